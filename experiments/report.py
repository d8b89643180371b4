"""Writes pages: of your own runs, or of the results that come with the project.

  python -m experiments.report --output_dir=out
  python -m experiments.report

The first writes OUTPUT_DIR/report/index.html, one file that needs no network, with CSV and
Markdown beside it. The second, for maintainers, rewrites README.md files from experiments/results/.
"""

import dataclasses
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from experiments.run import command_line
from experiments.study import files, page, pages, papers, results, runner, sections
from experiments.study.experiment import Experiment
from tff_het.simulation import records


@dataclasses.dataclass(frozen=True)
class Settings:
    """Settings of this program.

    Attributes:
      output_dir: Where your runs are. Without it, the project's own pages are rewritten.
      merge: Add the runs in --output_dir to the project's results.
      stale: Say which results come from code or settings that have changed since, and stop.
      carry: Make some of each method's outdated results again. Where their tables are equal, and
        numbers to 12 digits, all of the method's are marked as results of this commit too.
      check: Write nothing, and fail where a page is not what the project's results give.
      data_dir: As in training; for --carry.
    """

    output_dir: str | None = None
    merge: bool = False
    stale: bool = False
    carry: bool = False
    check: bool = False
    data_dir: str | None = None


def write(experiments: Iterable[Experiment], output_dir: Path, folder_name: str = "report") -> Path:
    """Writes the report on all scales that were run, inside `output_dir`; returns the page's path.

    Raises ValueError if nothing was run, or a result was not written by this program.
    """
    found = [sections.section(*one) for one in _made(experiments, output_dir)]
    if not found:
        example = f"tff-het reproduce hdafl.table3 --scale=smoke --output_dir={output_dir}"
        raise ValueError(f"There are no runs in {output_dir}: make some, such as {example}.")
    folder = output_dir / folder_name
    folder.mkdir(parents=True, exist_ok=True)
    for section in found:
        records.write_atomically(folder / f"{section.id}.csv", files.as_csv(section))
        records.write_atomically(folder / f"{section.id}.md", files.as_markdown(section))
    records.write_atomically(folder / "index.html", page.page(found))
    return folder / "index.html"


def write_pages(*, check: bool) -> Sequence[Path]:
    """Writes the pages that kept results give, or checks them; returns those that differed."""
    made = pages.all_pages()
    different = [p for p, new in made.items() if not p.exists() or p.read_bytes() != new]
    for path in [] if check else different:
        path.write_bytes(made[path])
    return different


def stale(experiments: Iterable[Experiment], output_dir: Path | None = None) -> str:
    """Returns which runs, or kept results, come from other code or settings than there are now."""
    lines = []
    for experiment, found in _made(experiments, output_dir):
        for reason, times in Counter(one.why for one in runner.outdated(experiment, found)).items():
            runs = f"{times} of {len(found.runs)} runs"
            lines.append(f"{experiment.id}, {found.scale}: {runs}, since changed: {reason}")
    return "\n".join(lines) or "All results are of the code and settings that there are now."


def _made(experiments: Iterable[Experiment], output_dir: Path | None) -> results.OfScales:
    for experiment in experiments:
        for scale in experiment.scales:
            if output_dir is None:
                found = results.read(experiment, scale)
            else:
                found = runner.read(experiment, scale, output_dir)
            if found is not None:
                yield experiment, found


def main(argv: Sequence[str]) -> int:
    """Does what the settings say; returns the exit code."""
    settings = command_line.settings(Settings, argv, __doc__)
    everything = papers.all_experiments()
    with command_line.errors_in_one_line():
        folder = None if settings.output_dir is None else command_line.folder(settings.output_dir)
        asked = [name for name in ("merge", "stale", "carry", "check") if getattr(settings, name)]
        if len(asked) > 1 or (folder and {"carry", "check"} & {*asked}):
            raise ValueError("--check and --carry go alone, --merge and --stale with --output_dir.")
        if settings.data_dir and not settings.carry:
            raise ValueError("--data_dir is for --carry: nothing else here reads data.")
        of_the_project = settings.carry or settings.merge or folder is None
        if of_the_project and not settings.stale and not (pages.ROOT / "pyproject.toml").exists():
            raise ValueError(
                "The project's pages and results are in a checkout, and this is an installed "
                "package. For a page of your own runs, give --output_dir alone."
            )
        if settings.stale:
            print(stale(everything, folder))
        elif settings.carry:
            for line in results.carry(_made(everything, None), data_dir=settings.data_dir):
                print(line, flush=True)
        elif settings.merge:
            if folder is None:
                raise ValueError("--merge adds the runs in --output_dir: give that too.")
            print(results.merge(_made(everything, folder)))
        elif folder is not None:
            print(write(everything, folder))
        else:
            different = write_pages(check=settings.check)
            print("\n".join(map(str, different)) or "All pages are as they should be.")
            return 1 if settings.check and different else 0
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
