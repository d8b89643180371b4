"""What a run needs to go on exactly where it was, in one SQLite file.

Server state, client states and the rows of the run's tables are written in one
transaction: after a kill at any moment the file holds either all of a
checkpoint or none of it. The tables (CSV files) are copies made from here.
"""

import contextlib
import io
import json
import logging
import sqlite3
import threading
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

_FORMAT = 2
_VALUES = "round INTEGER, checksum INTEGER, value BLOB, PRIMARY KEY (owner, round)"
_SCHEMA = (
    "CREATE TABLE about (key TEXT PRIMARY KEY, value TEXT)",
    "CREATE TABLE servers "
    "(round INTEGER PRIMARY KEY, checksums INTEGER, checksum INTEGER, state BLOB)",
    f"CREATE TABLE clients (owner INTEGER, {_VALUES})",
    "CREATE INDEX clients_by_round ON clients (round, owner)",
    f"CREATE TABLE rows (owner TEXT, {_VALUES})",
)


class CheckpointError(RuntimeError):
    """A checkpoint file cannot be used: damaged, in use, or of another run."""


def encode(structure: Any) -> bytes:
    """Serialises the leaves of a structure of arrays, without pickle."""
    buffer = io.BytesIO()
    for leaf in tf.nest.flatten(structure):
        array = np.asarray(leaf)
        if array.dtype.kind not in "biufcSU":
            raise TypeError(f"Values of dtype {array.dtype} cannot be kept in a checkpoint.")
        np.lib.format.write_array(buffer, array, allow_pickle=False)
    return buffer.getvalue()


def decode(data: bytes, like: Any) -> Any:
    """Undoes `encode`, given any structure of the same form.

    Raises:
      CheckpointError: If there are more or fewer values than in `like`.
    """
    buffer = io.BytesIO(data)
    leaves = []
    while buffer.tell() < len(data):
        leaves.append(np.lib.format.read_array(buffer, allow_pickle=False))
    expected = len(tf.nest.flatten(like))
    if len(leaves) != expected:
        raise CheckpointError(
            f"A saved state has {len(leaves)} values where {expected} are expected: it was made by "
            "another version of the method."
        )
    return tf.nest.pack_sequence_as(like, leaves)


def path_in(folder: Path) -> Path:
    """Returns where a run's folder has its checkpoint file."""
    return folder / "checkpoints" / "run.sqlite"


def rounds_done(folder: Path, config: Mapping[str, Any]) -> int:
    """Returns how far the run in a folder has come; 0 where there is none.

    Raises:
      CheckpointError: If it cannot be continued with this `config`.
    """
    path = path_in(folder)
    if not path.exists():
        return 0
    with contextlib.closing(Checkpoints(path, config)) as saved:
        return saved.latest_round() or 0


class Checkpoints:
    """The checkpoint file of one run.

    What is put since the last `save` is in an open transaction: it is read back
    by this object and gone after a crash.
    """

    def __init__(self, path: Path, config: Mapping[str, Any], *, keep: int = 2):
        """Opens the file, or makes it.

        Args:
          path: The file.
          config: What defines the run (JSON values): a file made with another
            one is refused.
          keep: How many checkpoints are kept to return to.

        Raises:
          CheckpointError: If the file is damaged, in use by another process, or
            of a run with another `config`.
          ValueError: If `keep` is not positive.
        """
        if keep < 1:
            raise ValueError(f"At least one checkpoint is kept, found keep={keep}.")
        self._path = Path(path)
        self._keep = keep
        self._path.parent.mkdir(parents=True, exist_ok=True)
        interrupted = _is_hot(Path(f"{path}-journal"))
        # One thread may look up client states while another saves.
        self._lock = threading.RLock()
        self._all_checksums = 0
        self._db = sqlite3.connect(
            self._path, isolation_level=None, timeout=1.0, check_same_thread=False
        )
        try:
            self._open(config)
        except sqlite3.DatabaseError as error:
            self._db.close()
            raise self._error(error) from error
        except BaseException:
            self._db.close()
            raise
        if interrupted:
            logging.warning(
                "The last save to %s was interrupted; it is ignored, and the run goes on from "
                "round %d.",
                path,
                self.latest_round() or 0,
            )

    def _open(self, config: Mapping[str, Any]) -> None:
        self._db.execute("PRAGMA locking_mode = EXCLUSIVE")
        self._db.execute("PRAGMA synchronous = NORMAL")
        self._db.execute("BEGIN EXCLUSIVE")
        tables = self._db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if not tables:
            for statement in _SCHEMA:
                self._db.execute(statement)
            about = {"format": str(_FORMAT), "config": json.dumps(dict(config))}
            about["checksum"] = str(_checksum(about["config"]))
            self._db.executemany("INSERT INTO about VALUES (?, ?)", about.items())
        self._commit()
        self._inode = self._path.stat().st_ino
        self._check_file()
        about = dict(self._db.execute("SELECT key, value FROM about"))
        if about.get("format") != str(_FORMAT):
            raise CheckpointError(
                f"{self._path} has format {about.get('format')}, this version reads {_FORMAT}. "
                "Give another output folder, or delete this one to start anew."
            )
        schema = self._db.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")
        if {statement for (statement,) in schema} != {*_SCHEMA}:
            raise sqlite3.DatabaseError("its tables are not those of this program")
        if str(_checksum(about.get("config"))) != about.get("checksum"):
            raise sqlite3.DatabaseError("the settings differ from their checksum")
        self._check_completeness()
        saved, wanted = json.loads(about["config"]), json.loads(json.dumps(dict(config)))
        different = [k for k in {**saved, **wanted} if saved.get(k) != wanted.get(k)]
        if different:
            told = {k: f"{k}: {saved.get(k)!r} there, {wanted.get(k)!r} now" for k in different}
            for name in [name for name in told if name.endswith("_fingerprint")]:
                told[name] = f"another content of {name.removesuffix('_fingerprint')}"
            changes = "; ".join(told[name] for name in sorted(told))
            raise CheckpointError(
                f"Give another output folder, or delete this one: {self._path} belongs to a run "
                f"with other settings ({changes})."
            )

    def _check_file(self) -> None:
        # SQLite itself takes what is missing of the last page for zeros.
        expected = self._pragma("page_count") * self._pragma("page_size")
        if (found := self._path.stat().st_size) < expected:
            raise sqlite3.DatabaseError(f"{found} of {expected} bytes")
        if (state := self._pragma("integrity_check(1)")) != "ok":
            raise sqlite3.DatabaseError(state)

    def _check_completeness(self) -> None:
        """Notices that states or rows are missing; a client's is checked when it is read."""
        for found in self._db.execute("SELECT * FROM rows"):
            _checked(found)
            self._all_checksums ^= found[2]
        for (checksum,) in self._db.execute("SELECT checksum FROM clients"):
            self._all_checksums ^= checksum
        if self.rounds() and self._latest_server()[0] != self._all_checksums:
            raise sqlite3.DatabaseError("states of clients or rows of tables are missing")

    def _pragma(self, name: str) -> Any:
        return self._db.execute(f"PRAGMA {name}").fetchone()[0]

    def _commit(self) -> None:
        self._db.execute("COMMIT")
        self._db.execute("BEGIN IMMEDIATE")

    def rounds(self) -> list[int]:
        """Returns the rounds of the checkpoints that are there, ascending."""
        return [r for (r,) in self._db.execute("SELECT round FROM servers ORDER BY round")]

    def latest_round(self) -> int | None:
        """Returns the last checkpoint's round, or None."""
        return max(self.rounds(), default=None)

    def server_state(self, like: Any) -> Any:
        """Returns the last checkpoint's server state, with the structure of `like`."""
        with self._naming_the_file():
            return decode(self._latest_server()[1], like)

    def _latest_server(self) -> tuple[int, bytes]:
        """All checksums of the last checkpoint in one, and its encoded state."""
        query = "SELECT round, checksums, checksum, state FROM servers ORDER BY round DESC"
        round_num, checksums, checksum, state = self._db.execute(query).fetchone()
        _check(checksum, round_num, checksums, state)
        return checksums, state

    def client_state(self, client: int) -> bytes | None:
        """Returns a client's newest state, as `encode` made it, or None."""
        query = "SELECT * FROM clients WHERE owner = ? ORDER BY round DESC LIMIT 1"
        with self._naming_the_file():
            found = self._db.execute(query, (int(client),)).fetchone()
            return None if found is None else _checked(found)

    @contextlib.contextmanager
    def _naming_the_file(self) -> Iterator[None]:
        """For one thread at a time; what SQLite raises becomes an error that names the file."""
        try:
            with self._lock:
                yield
        except sqlite3.Error as error:
            raise self._error(error) from error

    def _error(self, error: sqlite3.Error) -> CheckpointError:
        """What SQLite says, and what to do."""
        if "locked" in str(error):
            return CheckpointError(f"{self._path} is in use by another process.")
        if str(error) in ("disk I/O error", "database or disk is full"):
            return CheckpointError(
                f"{self._path} cannot be written ({error}). Make room: the same command goes on."
            )
        return CheckpointError(
            f"{self._path} is damaged or no checkpoint file ({error}). Move it away to start anew."
        )

    def put_clients(self, round_num: int, states: Iterable[tuple[int, bytes]]) -> None:
        """Writes encoded states of clients after `round_num` rounds."""
        with self._naming_the_file():
            for client, state in states:
                self._put("clients", int(client), round_num, state)

    def put_row(self, name: str, round_num: int, text: str) -> None:
        """Adds a round's lines to the table `name`."""
        with self._naming_the_file():
            self._put("rows", name, round_num, text)

    def _put(self, table: str, owner: int | str, round_num: int, value: bytes | str) -> None:
        checksum = _checksum(owner, round_num, value)
        self._delete(table, "owner = ? AND round = ?", owner, round_num)
        values = (owner, round_num, checksum, value)
        self._db.execute(f"INSERT INTO {table} VALUES (?, ?, ?, ?)", values)
        self._all_checksums ^= checksum

    def _delete(self, table: str, which: str, *values: Any) -> None:
        query = f"DELETE FROM {table} WHERE {which} RETURNING checksum"
        for (checksum,) in self._db.execute(query, values).fetchall():
            self._all_checksums ^= checksum

    def rows(self, name: str) -> list[tuple[int, str]]:
        """Returns (round, lines) of the table `name`, in order."""
        query = "SELECT * FROM rows WHERE owner = ? ORDER BY round"
        with self._naming_the_file():
            return [(found[1], _checked(found)) for found in self._db.execute(query, (name,))]

    def save(self, round_num: int, server_state: Any) -> None:
        """Makes all that was put since the last save, and this state, a checkpoint."""
        with self._naming_the_file():
            if not self._path.exists() or self._path.stat().st_ino != self._inode:
                raise CheckpointError(
                    f"{self._path} was removed or replaced while the run goes on: what it would "
                    "save is lost. The same command begins anew."
                )
            self._forget_old(round_num)
            self._put_server(round_num, encode(server_state))
            self._commit()

    def _put_server(self, round_num: int, state: bytes) -> None:
        checksum = _checksum(round_num, self._all_checksums, state)
        self._db.execute(
            "INSERT OR REPLACE INTO servers VALUES (?, ?, ?, ?)",
            (round_num, self._all_checksums, checksum, state),
        )

    def _forget_old(self, newest: int) -> None:
        """Drops checkpoints beyond the last `keep`, and client states that only they need."""
        rounds = sorted({*self.rounds(), newest})
        before, oldest = rounds[0], rounds[-self._keep :][0]
        if before == oldest:
            return
        self._db.execute("DELETE FROM servers WHERE round < ?", (oldest,))
        # Of each client the newest state up to the oldest checkpoint stays.
        replaced = self._db.execute(
            "SELECT owner, max(round) FROM clients WHERE round > ? AND round <= ? GROUP BY owner",
            (before, oldest),
        ).fetchall()
        for owner_and_round in replaced:
            self._delete("clients", "owner = ? AND round < ?", *owner_and_round)

    def return_to(self, round_num: int) -> None:
        """Forgets all that came after an earlier checkpoint.

        Raises:
          CheckpointError: If there is no checkpoint of that round.
        """
        if round_num not in self.rounds():
            raise CheckpointError(
                f"{self._path} has no checkpoint of round {round_num}, only of {self.rounds()}."
            )
        with self._naming_the_file():
            self._db.execute("DELETE FROM servers WHERE round > ?", (round_num,))
            for table in ("clients", "rows"):
                self._delete(table, "round > ?", round_num)
            self._put_server(round_num, self._latest_server()[1])
            self._commit()

    def close(self) -> None:
        """Closes the file; what was put since the last save is dropped."""
        if self._db.in_transaction:  # Not if an interrupt came between two of them.
            self._db.execute("ROLLBACK")
        # A killed program's: SQLite leaves it where nothing was written since. Still locked here.
        Path(f"{self._path}-journal").unlink(missing_ok=True)
        self._db.close()


def _checksum(*values: int | str | bytes | None) -> int:
    """Checksum of a value and its keys; SQLite itself checks its own structures only."""
    checksum = 0
    for value in values:
        checksum = zlib.crc32(value if isinstance(value, bytes) else repr(value).encode(), checksum)
    return checksum


def _checked(found: Sequence[Any]) -> Any:
    """The value of a row with its owner, round and checksum."""
    owner, round_num, checksum, value = found
    _check(checksum, owner, round_num, value)
    return value


def _check(checksum: int, *values: Any) -> None:
    if checksum != _checksum(*values):
        raise sqlite3.DatabaseError("a value differs from its checksum")


def _is_hot(journal: Path) -> bool:
    """Whether SQLite's journal is of an unfinished transaction; otherwise its header is zero."""
    try:
        with journal.open("rb") as file:
            return any(file.read(8))
    except FileNotFoundError:
        return False
