"""One run: its settings (`RunConfig`), and training it (`run`).

from experiments.run import RunConfig, run
result = run(RunConfig.of(dataset="digits", method="hdafl", rounds=5))
"""

from typing import TYPE_CHECKING, Any

from experiments.run.config import RunConfig

if TYPE_CHECKING:
    from experiments.run.one import Result, run

__all__ = ["Result", "RunConfig", "run"]


def __getattr__(name: str) -> Any:
    """Imports TensorFlow only where something is trained: `--help` and configs come without."""
    if name not in ("Result", "run"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from experiments.run import one

    return getattr(one, name)
