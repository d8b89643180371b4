"""Identity of runs: what names a run's folder and what makes a stored run stale."""

import hashlib
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from experiments.run.config import WITHOUT_EFFECT, RunConfig
from experiments.study import code
from experiments.study.experiment import Call, Training

_TRAINING = "experiments.run.one"


def name(work: Training | Call) -> str:
    """Returns the name of the folder that all seeds of a cell share: readable, and unique."""
    if isinstance(work, Training):
        parts = [work.flags.get(key, "") for key in ("dataset", "partition", "method")]
        readable = "-".join(part for part in parts if part)
    else:
        readable = work.function.__qualname__
    return f"{readable}-{_digest(_content(work))[:10]}"


def key(work: Training | Call, fingerprints: Sequence[str]) -> str:
    """Returns what changes with the settings, the data and the code that a result comes from.

    Args:
      work: What is run.
      fingerprints: Those of its data sets.
    """
    settings = [_settings(one) for one in work.chain]
    return _digest([settings, list(fingerprints), code_of(work)])


def code_of(work: Training | Call) -> Mapping[str, str]:
    """Returns the files that a result comes from, as `code.files`."""
    return code.files(module for one in work.chain for module in _roots(one))


def _roots(work: Training | Call) -> set[str]:
    if isinstance(work, Training):
        settings = _settings(work)
        names = [settings[role] for role in ("dataset", "partition", "model", "method")]
        return {_TRAINING, *code.named(names)}
    module = _module(work)
    return {module, *code.named([*work.data_sets, *_texts(work.arguments), *code.texts(module)])}


def _settings(work: Training | Call) -> Mapping[str, Any]:
    """What a run is told, defaults included; a new setting that is off changes nothing."""
    if isinstance(work, Call):
        return {"function": function_name(work), "arguments": work.arguments}
    values = RunConfig.of(**work.flags).values() | {"method": work.flags["method"]}
    apart = (*WITHOUT_EFFECT, "seed")
    return {k: v for k, v in values.items() if v is not None and k not in apart}


def _texts(value: Any) -> Iterator[str]:
    """All texts inside of a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _texts(inner)


def function_name(call: Call) -> str:
    """The function's name, with which it can be imported."""
    return f"{_module(call)}.{call.function.__qualname__}"


def _module(call: Call) -> str:
    """The module's name, also where it is the program that runs (`python -m`)."""
    name = call.function.__module__
    spec = sys.modules[name].__spec__ if name == "__main__" else None
    return name if spec is None else spec.name


def _content(work: Training | Call) -> Any:
    if isinstance(work, Training):
        flags = dict(work.flags)
        return flags if work.start is None else [flags, _content(work.start)]
    call = [function_name(work), dict(work.arguments)]
    return call if work.start is None else [*call, _content(work.start)]


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
