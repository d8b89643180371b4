"""The files that a run leaves: tables, trackers' (TensorBoard's), times.

Tables are copies of what the checkpoint file holds. When a run goes on they are
rewritten from there, so an interrupted run ends with the bytes of one that
was never interrupted. Times, which no two runs share, have a file of their own.
"""

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tff_het import writing
from tff_het.simulation import tracking as trackers
from tff_het.simulation.checkpoints import CheckpointError, Checkpoints

Row = Mapping[str, Any]


def write_atomically(path: Path, text: str) -> None:
    """Writes a file that appears under its name only when it is complete."""
    with writing.complete(path) as file:
        file.write(text.encode())


def write_json(path: Path, value: Any) -> None:
    """Writes JSON, complete or not at all; NaN is refused."""
    write_atomically(path, json.dumps(value, indent=2, allow_nan=False) + "\n")


def as_csv(rows: Iterable[Sequence[Any]]) -> str:
    """Returns rows as the text of a CSV file."""
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerows(rows)
    return buffer.getvalue()


def read_table(path: Path) -> list[dict[str, str]]:
    """Reads the rows of a table of a run, such as `metrics.csv`: texts by column."""
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def read_json(path: Path) -> dict[str, Any]:
    """Reads an object from JSON.

    Raises:
      FileNotFoundError: If there is no such file.
      ValueError: If the file holds anything else.
    """
    try:
        value = json.loads(path.read_bytes())
        if not isinstance(value, dict):
            raise ValueError(f"expected an object, found {type(value).__name__}")
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is damaged ({error}).") from error
    return value


class Table:
    """A CSV file whose lines also stand in the checkpoint file."""

    def __init__(self, path: Path, columns: Sequence[str], checkpoints: Checkpoints):
        self.columns = tuple(columns)
        self._path = path
        self._checkpoints = checkpoints
        self._name = path.stem
        self._pending: list[str] = []
        lines = "".join(text for _, text in checkpoints.rows(self._name))
        header = as_csv([self.columns])
        for _, kept in checkpoints.rows(f"{self._name}, columns"):
            if lines and kept != header:
                raise CheckpointError(
                    f"{path} has the columns {kept.strip()}; now there would be {header.strip()}. "
                    "Clients' groups, validation examples and which clients are evaluated have to "
                    "stay: give another output folder."
                )
        checkpoints.put_row(f"{self._name}, columns", 0, header)
        write_atomically(path, header + lines)

    def rows(self) -> list[dict[str, str]]:
        """Returns the rows in the checkpoint file."""
        lines = "".join(text for _, text in self._checkpoints.rows(self._name))
        return list(csv.DictReader(io.StringIO(lines), fieldnames=self.columns))

    def put(self, round_num: int, rows: Iterable[Row]) -> None:
        """Adds the rows of a round; they are in the file after `flush`."""
        values = [[_number(row.get(column)) for column in self.columns] for row in rows]
        text = as_csv(values)
        self._checkpoints.put_row(self._name, round_num, text)
        self._pending.append(text)

    def flush(self) -> None:
        """Appends what was put since the last time."""
        with writing.naming(self._path), self._path.open("a", encoding="utf-8") as file:
            file.write("".join(self._pending))
        self._pending.clear()


def _number(value: Any) -> Any:
    """Python's own number, whose text gives back every digit."""
    return value.item() if hasattr(value, "item") else value


class Records:
    """All files of a run beside the checkpoints."""

    def __init__(
        self,
        folder: Path,
        columns: Sequence[str],
        checkpoints: Checkpoints,
        *,
        tracking: Sequence[str] = ("tensorboard",),
        config: Mapping[str, Any] | None = None,
    ):
        """Opens the files, and takes them back to the last checkpoint.

        Args:
          folder: The run's folder.
          columns: Of `metrics.csv`; the first is `round`.
          checkpoints: The run's checkpoint file.
          tracking: Trackers that are told each row of `metrics.csv`.
          config: What defines the run, for trackers that show it.
        """
        self._checkpoints = checkpoints
        self._metrics = Table(folder / "metrics.csv", columns, checkpoints)
        self._clients = Table(folder / "clients.csv", CLIENT_COLUMNS, checkpoints)
        self._times_path = folder / "times.csv"
        if not self._times_path.exists():
            write_atomically(
                self._times_path, "round,training_seconds,evaluation_seconds,saving_seconds\n"
            )
        self._trackers = trackers.start(tracking, folder, config or {})
        for row in self._metrics.rows():
            self._track({k: float(v) for k, v in row.items() if v != ""})

    def put(self, row: Row, clients: Iterable[Row]) -> None:
        """Adds a round's row, and a row for each client where it was evaluated."""
        self._metrics.put(row["round"], [row])
        self._clients.put(row["round"], clients)
        self._track(row)

    def last_row(self) -> dict[str, str]:
        """Returns the last round's row; there has to be one."""
        return self._metrics.rows()[-1]

    def save(self, round_num: int, server_state: Any) -> None:
        """Makes a checkpoint of all that was put, and brings the files up to it."""
        self._checkpoints.save(round_num, server_state)
        self._metrics.flush()
        self._clients.flush()
        for tracker in self._trackers:
            tracker.flush()

    def put_times(self, round_num: int, seconds: Iterable[float]) -> None:
        """Adds how long a round's training, evaluation and saving took."""
        with writing.naming(self._times_path), self._times_path.open("a") as file:
            file.write(",".join([str(round_num), *(f"{value:.4f}" for value in seconds)]) + "\n")

    def close(self) -> None:
        for tracker in self._trackers:
            tracker.close()

    def _track(self, row: Row) -> None:
        for tracker in self._trackers:
            tracker.write(row)


CLIENT_COLUMNS = (
    "round", "split", "client", "group", "num_examples", "accuracy", "loss", "rounds_trained"
)  # fmt: skip
