"""Keeps runs by their identity, so that tables that need the same run share it.

OUTPUT_DIR/<paper>/runs/<what>/seed<k>/result.json, and the run's own files in files/
OUTPUT_DIR/<paper>/<experiment>/<scale>/plan.json, which runs a table is made of
"""

import base64
import csv
import dataclasses
import enum
import hashlib
import io
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tff_het.simulation import records


class Status(enum.Enum):
    """Outcome of a run, as written in `result.json` and on the page."""

    OK = "ok"
    DIVERGED = "diverged"
    FAILED = "failed"
    MISSING_DATA = "missing_data"
    UNFINISHED = "unfinished"
    ABSENT = "not run"


FINISHED = (Status.OK, Status.DIVERGED)  # Of these, the first alone has numbers.


@dataclasses.dataclass(frozen=True)
class Run:
    """One cell with one seed, as it stands on disk.

    The record is its `result.json`, and what was asked of its files, which merged results keep:
    'curves', 'tables' and 'contents' (base64), each by name.
    """

    folder: Path
    status: Status
    record: dict[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def files(self) -> Path:
        """The folder that the run itself writes to."""
        return self.folder / "files"

    @property
    def error(self) -> str:
        """Why there is no result; empty where there is one."""
        return self.record.get("error", "")

    @property
    def metrics(self) -> Mapping[str, float]:
        """Its numbers, of a run that succeeded."""
        return self.record["metrics"]

    def file(self, name: str) -> io.BytesIO:
        """Returns the content of one of its files.

        Raises ValueError if the run left another one, or it was not kept when the run was merged.
        """
        text = self._once("contents", name, lambda: base64.b64encode(self._content(name)).decode())
        return io.BytesIO(base64.b64decode(text))

    def curve(self, column: str) -> tuple[list[int], list[float]]:
        """Returns the rounds in which a column of `metrics.csv` was measured, and its values."""

        def read() -> tuple[list[int], list[float]]:
            rows = [row for row in self._table("metrics.csv") if row[column]]
            return [int(row["round"]) for row in rows], [float(row[column]) for row in rows]

        rounds, values = self._once("curves", column, read)
        return rounds, values

    def clients(self) -> list[Mapping[str, str]]:
        """Returns the rows of `clients.csv` about test examples after the last round."""

        def read() -> list[Mapping[str, str]]:
            rows = [row for row in self._table("clients.csv") if row["split"] == "test"]
            return [row for row in rows if row["round"] == rows[-1]["round"]]

        return self._once("tables", "clients.csv", read)

    def _table(self, name: str) -> list[Mapping[str, str]]:
        return list(csv.DictReader(io.StringIO(self._content(name).decode())))

    def _content(self, name: str) -> bytes:
        path = self.files / name
        content = path.read_bytes() if path.is_file() else None
        if content is None or _digest(content) != self.record["files"].get(name):
            raise ValueError(
                f"{path} is not as its run left it, or was not merged with it. Delete "
                f"{self.folder} to make the run again."
            )
        return content

    def _once(self, kind: str, name: str, read: Callable[[], Any]) -> Any:
        known = self.record.setdefault(kind, {})
        if name not in known:
            known[name] = read()
        return known[name]


def read(folder: Path) -> Run:
    """Reads what is known of a run; raises ValueError if its `result.json` has been changed."""
    path = folder / "result.json"
    if not path.exists():
        return Run(folder, Status.ABSENT)
    record = records.read_json(path)
    if record.pop("checksum", None) != checksum(record):
        raise ValueError(
            f"{path} is not a result as this program writes it: it differs from its checksum. "
            "Delete it to make the run again."
        )
    return Run(folder, Status(record["status"]), record)


def write(folder: Path, status: Status, key: str, **values: Any) -> Run:
    """Keeps what became of a run, whole or not at all; where it succeeded, its files' digests."""
    record = {"status": status.value, "key": key, **values}
    folder.mkdir(parents=True, exist_ok=True)
    if status in FINISHED:
        record["files"] = digests(folder / "files")
    records.write_json(folder / "result.json", record | {"checksum": checksum(record)})
    return Run(folder, status, record)


def digests(folder: Path) -> dict[str, str]:
    """Returns what tells the content of each file in a folder, by name."""
    return {p.name: _digest(p.read_bytes()) for p in sorted(folder.glob("*")) if p.is_file()}


def checksum(value: Any) -> str:
    """Returns the SHA-256 (hex) of a JSON value."""
    return _digest(json.dumps(value, sort_keys=True).encode())


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def write_seeds(folder: Path, seeds: Sequence[int]) -> None:
    """Notes in `plan.json` which seeds a scale of a table is made of."""
    folder.mkdir(parents=True, exist_ok=True)
    records.write_json(folder / "plan.json", {"seeds": list(seeds)})


def read_seeds(folder: Path) -> tuple[int, ...] | None:
    """Reads `plan.json`, None where nothing was ever run; raises ValueError if it is damaged."""
    path = folder / "plan.json"
    if not path.exists():
        return None
    seeds = records.read_json(path).get("seeds")
    if not isinstance(seeds, list) or not all(isinstance(seed, int) for seed in seeds):
        raise ValueError(f"{path} is damaged. Give the table's command again, with its --seeds.")
    return tuple(seeds)


@dataclasses.dataclass(frozen=True)
class Results:
    """All runs of one scale of a table or figure.

    Every cell is there with each of its seeds, of those asked for, whatever became of it.
    """

    scale: str
    seeds: Sequence[int]
    runs: Mapping[tuple[str, int], Run]  # By cell and seed.

    def ok(self, cells: Sequence[str], seed: int) -> dict[str, Run] | None:
        """Returns these cells' runs of a seed by cell, or None unless all of them succeeded."""
        found = {cell: self.runs[cell, seed] for cell in cells if (cell, seed) in self.runs}
        complete = len(found) == len(cells)
        return found if complete and all(r.status is Status.OK for r in found.values()) else None

    def of(self, cell: str) -> list[Run]:
        """Returns a cell's runs that succeeded, in the seeds' order."""
        return [found[cell] for seed in self.seeds if (found := self.ok([cell], seed))]

    def saved(self, cells: Iterable[str], file: str) -> dict[str, Any]:
        """Returns the arrays that each cell's first run has left in a file, of cells that ran."""
        return {cell: np.load(run.file(file)) for cell in cells for run in self.of(cell)[:1]}

    def first(self, *cells: str) -> tuple[int, dict[str, Run]] | None:
        """Returns the first seed with which all of these cells succeeded, and their runs."""
        found = ((seed, self.ok(cells, seed)) for seed in self.seeds)
        return next(((seed, runs) for seed, runs in found if runs), None)
