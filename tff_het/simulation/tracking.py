"""Trackers: TensorBoard and MLflow log the rows of `metrics.csv` too.

Logged rows cannot be removed. So when a run continues, each tracker starts again and logs all rows:
it ends as if the run had never been interrupted.
"""

import importlib.util
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from tensorboard.compat.proto import event_pb2, summary_pb2
from tensorboard.summary.writer.event_file_writer import EventFileWriter

Row = Mapping[str, Any]


class Tracker(Protocol):
    """Logs rows. Its factory takes the run's folder and the run's settings by name."""

    def write(self, row: Row) -> None:
        """Takes a round's row: numbers by name, `round` among them, or None."""

    def flush(self) -> None:
        """Shows what was written."""

    def close(self) -> None:
        """Ends; what was not flushed may be lost."""


class TensorBoard:
    """`FOLDER/tensorboard`."""

    def __init__(self, folder: Path, config: Mapping[str, Any]):
        del config
        shutil.rmtree(folder / "tensorboard", ignore_errors=True)
        # TensorBoard's own writer: TensorFlow's operations take as long as a small model's round.
        self._events = EventFileWriter(str(folder / "tensorboard"))

    def write(self, row: Row) -> None:
        values = [
            summary_pb2.Summary.Value(tag=name, simple_value=value)
            for name, value in _numbers(row).items()
        ]
        self._events.add_event(
            event_pb2.Event(
                wall_time=time.time(),
                step=int(row["round"]),
                summary=summary_pb2.Summary(value=values),
            )
        )

    def flush(self) -> None:
        self._events.flush()

    def close(self) -> None:
        self._events.close()


class MLflow:
    """A run in `mlruns` beside the folder, so that methods compare; no server, no network.

    It has the folder's name. One of the same name from before is deleted, as `mlflow` deletes.
    """

    def __init__(self, folder: Path, config: Mapping[str, Any]):
        from mlflow import MlflowClient, entities  # Of the extra `tracking`.

        folder = folder.resolve()
        self._metric = entities.Metric
        self._client = MlflowClient(tracking_uri=(folder.parent / "mlruns").as_uri())
        name = folder.parent.name
        found = self._client.get_experiment_by_name(name)
        experiment = found.experiment_id if found else self._client.create_experiment(name)
        for run in self._client.search_runs([experiment]):
            if run.info.run_name == folder.name:
                self._client.delete_run(run.info.run_id)
        self._run = self._client.create_run(experiment, run_name=folder.name).info.run_id
        given = {name: value for name, value in config.items() if value is not None}
        parameters = [entities.Param(name, str(value)[:_LONGEST]) for name, value in given.items()]
        for first in range(0, len(parameters), _MOST_PARAMETERS):
            self._client.log_batch(self._run, params=parameters[first : first + _MOST_PARAMETERS])
        self._pending: list[Any] = []

    def write(self, row: Row) -> None:
        now, step = int(1000 * time.time()), int(row["round"])
        self._pending += [
            self._metric(name, float(value), now, step) for name, value in _numbers(row).items()
        ]

    def flush(self) -> None:
        for first in range(0, len(self._pending), _MOST_METRICS):
            self._client.log_batch(self._run, metrics=self._pending[first : first + _MOST_METRICS])
        self._pending.clear()

    def close(self) -> None:
        self.flush()
        self._client.set_terminated(self._run)


# MLflow's own bounds, of a value's length and of one call.
_LONGEST, _MOST_PARAMETERS, _MOST_METRICS = 500, 100, 1000

TRACKERS: dict[str, Callable[[Path, Mapping[str, Any]], Tracker]] = {
    "tensorboard": TensorBoard,
    "mlflow": MLflow,
}
# Tracker -> the module that it needs of the extra `tracking`, and the package that has it.
_OPTIONAL = {"mlflow": ("mlflow", "mlflow-skinny")}


def check(names: Sequence[str]) -> None:
    """Checks that trackers exist and are installed.

    Raises:
      ValueError: If one does not exist, is given twice, or its package is missing.
    """
    unknown = [name for name in names if name not in TRACKERS]
    if unknown or len(set(names)) < len(names):
        raise ValueError(
            f"Trackers are different ones of {', '.join(TRACKERS)}; found {','.join(names)}."
        )
    for name in names:
        module, package = _OPTIONAL.get(name, (None, None))
        if module is not None and importlib.util.find_spec(module) is None:
            raise ValueError(
                f"Tracking by {name} needs a package that is not installed: uv sync --extra "
                f"tracking, or pip install {package}."
            )


def start(names: Sequence[str], folder: Path, config: Mapping[str, Any]) -> list[Tracker]:
    """Returns the trackers of these names for a run's folder, with nothing in them yet."""
    return [TRACKERS[name](folder, config) for name in names]


def _numbers(row: Row) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name != "round" and value is not None}
