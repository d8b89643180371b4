"""Identity of runs: what names a run's folder and what makes a stored run stale."""

import hashlib
import json
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
    return f"{readable}-{_digest(content(work))[:10]}"


def key(work: Training | Call, fingerprints: Sequence[str]) -> str:
    """Returns what changes with settings, data sets' fingerprints and code behind a result."""
    settings = [_settings(one) for one in work.chain]
    return _digest([settings, list(fingerprints), code_of(work)])


def code_of(work: Training | Call) -> Mapping[str, str]:
    """Returns the files that a result comes from, as `code.files`."""
    return code.files(frozenset(module for one in work.chain for module in _roots(one)))


def _roots(work: Training | Call) -> set[str]:
    if isinstance(work, Training):
        settings = _settings(work)
        names = [settings[role] for role in ("dataset", "partition", "model", "method")]
        return {_TRAINING, *code.named(names)}
    module = work.function.__module__
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
    elif isinstance(value, Mapping | list | tuple):
        for inner in value.values() if isinstance(value, Mapping) else value:
            yield from _texts(inner)


def shown(work: Training | Call) -> str:
    """Returns what is run in one line: flags, or a function with its arguments."""
    if isinstance(work, Training):
        own = " ".join(f"--{name}={value}" for name, value in sorted(work.flags.items()))
    else:
        own = f"{function_name(work)}({', '.join(f'{k}={v!r}' for k, v in work.arguments.items())})"
    return own if work.start is None else f"{shown(work.start)}, then {own}"


def function_name(call: Call) -> str:
    """The function's name, with which it can be imported."""
    return f"{call.function.__module__}.{call.function.__qualname__}"


def content(work: Training | Call) -> Any:
    """Returns what is run, as JSON values: flags, or a function with its arguments."""
    start = [] if work.start is None else [content(work.start)]
    if isinstance(work, Call):
        return [function_name(work), dict(work.arguments), *start]
    return [dict(work.flags), *start] if start else dict(work.flags)


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
