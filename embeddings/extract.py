"""Computes embeddings with a published network, as TFRecords with a metadata.json.

  python -m embeddings.extract --model=yamnet --module=https://tfhub.dev/google/yamnet/1 \\
      --input=FSDKaggle2018 --output=DATA/fsd_cough
  python -m embeddings.extract --model=inception \\
      --module=https://tfhub.dev/google/imagenet/inception_v3/feature_vector/5 \\
      --dataset=cifar10 --data_dir=DATA --output=DATA/cifar10_embeddings

The job is one Apache Beam pipeline and runs in this process. Beam's options, such as --runner, move
it elsewhere; everything after -- goes to Beam unchecked. The same command does nothing if its
result exists. A stopped job leaves nothing at --output.
"""

import contextlib
import io
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from embeddings import stopping

if __name__ == "__main__":  # Before the imports that take seconds.
    stopping.end_program_on_signals()

import tensorflow as tf
from absl import flags

from tff_het import datasets
from tff_het.numbers import INT32, Number

try:
    from apache_beam.options.pipeline_options import DirectOptions, PipelineOptions

    from embeddings import audio, images, job, sources
except ModuleNotFoundError as error:
    raise SystemExit(
        f"error: {error}. Embeddings need packages that training does not: install the extra, with"
        " uv sync --extra embeddings, or see docs/installing.md."
    ) from error

MODELS = ("yamnet", "inception", "image")
_NUMBERS = {
    "max_error_fraction": Number(0.0, 1.0),
    "image_size": Number(1, 4096, is_whole=True),
    "batch_size": Number(1, 65536, is_whole=True),
    "examples_per_shard": Number(1, INT32, is_whole=True),
}


def define_flags() -> flags.FlagValues:
    """Returns this program's flags, not yet parsed."""
    values = flags.FlagValues()
    flags.DEFINE_enum(
        "model",
        None,
        MODELS,
        "yamnet: clips of audio; inception: images at 299 pixels; image: images at --image_size.",
        flag_values=values,
    )
    texts = {
        "module": "TF-Hub handle, or a folder with a SavedModel.",
        "input": "A folder of clips (FSDKaggle2018, or train.csv, test.csv and audio/), or of "
        "images (<split>/<class>/<file>).",
        "data_dir": "Where --dataset is, as in training.",
        "output": "The folder to write.",
    }
    for name, text in texts.items():
        flags.DEFINE_string(name, None, text, flag_values=values)
    flags.DEFINE_enum(
        "dataset",
        None,
        datasets.names(),
        "A data set of images of the project, instead of --input.",
        flag_values=values,
    )
    flags.DEFINE_enum(
        "short_clips",
        "pad",
        audio.SHORT_CLIPS,
        "What to do with clips shorter than 960 ms (yamnet).",
        flag_values=values,
    )
    flags.DEFINE_float(
        "max_error_fraction",
        job.Job.max_error_fraction,
        "Share of the examples that may be unusable; with more the job fails.",
        flag_values=values,
    )
    numbers = {
        "image_size": (None, "Height and width in pixels that the module takes (image)."),
        "batch_size": (None, "Inputs of one call. Default: 128 images, or 64 patches of audio."),
        "examples_per_shard": (
            job.Job.examples_per_shard,
            "Examples in a file: what one worker takes at a time.",
        ),
    }
    for name, (default, text) in numbers.items():
        flags.DEFINE_integer(name, default, text, flag_values=values)
    flags.DEFINE_bool("overwrite", False, "Replace the embeddings at --output.", flag_values=values)
    return values


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a job; returns the exit code: 0, 1 if it failed, 2 if flags or files do not fit."""
    argv = sys.argv if argv is None else argv
    values = define_flags()
    if {"--help", "-h", "--helpshort"} & set(argv[1:]):
        print(f"{__doc__}\n{values.get_help()}")
        return 0
    try:
        options = parse(values, argv)
        wanted = make_job(values)
        result = job.run(wanted, options)
    except job.FailedError as error:
        return _refuse(error, 1)
    except (flags.Error, ValueError, OSError, MemoryError, tf.errors.OpError) as error:
        return _refuse(error, 2)
    print(_report(wanted.output, result))
    return 0


def parse(values: flags.FlagValues, argv: Sequence[str]) -> PipelineOptions:
    """Reads a command line into our flags; returns Beam's options.

    Raises:
      flags.Error: A flag is neither ours nor Beam's, or has a value that it does not accept.
    """
    for argument in argv:
        try:
            argument.encode()
        except UnicodeEncodeError as error:  # Python's mark of undecodable bytes.
            raise flags.Error(
                f"{argument!r} has letters that the locale does not have: set PYTHONUTF8=1."
            ) from error
    end = list(argv).index("--") if "--" in argv else len(argv)
    _, *others = values(list(argv[:end]), known_only=True)
    known = _of_beam(others)
    unknown = _of_beam(others, retain_unknown_options=True).keys() - known
    before = ["", *others]  # A text may be the value of the flag before it.
    unknown |= {
        text
        for flag, text in zip(before, others, strict=False)
        if not text.startswith("--") and ("=" in flag or not flag.startswith("--"))
    }
    if unknown:
        raise flags.Error(
            f"Not a flag of this program or of Beam: {', '.join(sorted(unknown))} (--help lists"
            " ours; give those of a runner behind --)"
        )
    options = PipelineOptions([*others, *argv[end + 1 :]])
    workers = options.view_as(DirectOptions).direct_num_workers
    Number(0, 1024, is_whole=True).check("--direct_num_workers", workers)
    return options


def _of_beam(argv: Sequence[str], **how: Any) -> dict[str, Any]:
    """Reads Beam's options; raises flags.Error where Beam would print its usage and exit."""
    printed = io.StringIO()
    try:
        with contextlib.redirect_stderr(printed):
            return PipelineOptions(argv).get_all_options(**how)
    except SystemExit as error:
        raise flags.Error(printed.getvalue().splitlines()[-1]) from error


def make_job(values: flags.FlagValues) -> job.Job:
    """Makes the job that the flags describe.

    Raises:
      ValueError: Flags are missing, or contradict each other.
    """
    if empty := [name for name in values if values[name].present and values[name].value == ""]:
        raise ValueError(f"--{empty[0]} is empty: give it a value, or leave it out.")
    for name, number in _NUMBERS.items():
        if values[name].value is not None:
            number.check(f"--{name}", values[name].value)
    for name in ("input", "module", "output"):  # Shells leave a ~ behind = as it is.
        values[name].value = values[name].value and os.path.expanduser(values[name].value)
    if missing := [name for name in ("model", "module", "output") if not values[name].value]:
        raise ValueError(f"--{missing[0]} is needed (--help lists all flags).")
    model = values["model"].value
    if values["image_size"].present and model != "image":
        raise ValueError(f"--image_size belongs to --model=image; found --model={model}.")
    if values["short_clips"].present and model != "yamnet":
        raise ValueError(f"--short_clips belongs to --model=yamnet; found --model={model}.")
    return job.Job(
        model=model,
        network=_network(values),
        source=_source(values),
        output=values["output"].value,
        examples_per_shard=values["examples_per_shard"].value,
        max_error_fraction=values["max_error_fraction"].value,
        overwrite=values["overwrite"].value,
    )


def _network(values: flags.FlagValues) -> job.Network:
    handle = values["module"].value
    given = values["batch_size"].value
    batch_size = {} if given is None else {"batch_size": given}
    if values["model"].value == "yamnet":
        return audio.YamNet(handle, values["short_clips"].value, **batch_size)
    size = values["image_size"].value
    if values["model"].value == "inception":
        size = images.INCEPTION_SIZE
    if size is None:
        raise ValueError("--model=image needs --image_size, the pixels that the module takes.")
    return images.ImageNetwork(handle, size, **batch_size)


def _source(values: flags.FlagValues) -> sources.Source:
    folder, name = values["input"].value, values["dataset"].value
    if bool(folder) == bool(name):
        raise ValueError("Give either --input or --dataset.")
    output = Path(values["output"].value).resolve()
    if folder and output.is_relative_to(Path(folder).resolve()):
        raise ValueError(f"--output lies in --input, of which it would become a part: {output}.")
    if values["data_dir"].value and not name:
        raise ValueError("--data_dir belongs to --dataset.")
    if values["model"].value == "yamnet":
        if not folder:
            raise ValueError("--model=yamnet embeds audio: give --input, not --dataset.")
        return sources.LabelledFiles(folder)
    if name:
        return sources.RegisteredDataset(name, values["data_dir"].value)
    return sources.ImageFolders(folder)


def _report(output: str, result: job.Result | None) -> str:
    if result is None:
        return f"{output} is complete: nothing to do."
    summary = result.summary
    left_out = ", ".join(f"{n} {reason}" for reason, n in summary.skipped_by_reason.items())
    return (
        f"{output}: {summary.num_records} embeddings of dimension {summary.dimension}, skipped:"
        f" {left_out or 'none'}, padded: {summary.padded};"
        f" {summary.num_records / result.seconds:.1f} a second in {result.seconds:.1f} s."
    )


def _refuse(error: object, code: int) -> int:
    print(f"error: {' '.join(str(error).split())}", file=sys.stderr)
    return code


if __name__ == "__main__":
    exit_code = main()
    # All is done: Ctrl-C could only break off the interpreter's shutdown, without a line.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.exit(exit_code)
