"""What a run needs to go on exactly where it was, in one SQLite file.

Server state, client states and the rows of the run's tables are written in one
transaction: after a kill at any moment the file holds either all of a
checkpoint or none of it. The tables (CSV files) are copies made from here.

A chain of checksums tells when something is damaged or missing: the server's row holds one of each
block of clients, and a block holds one of each client's state. They are looked up when a client is
read, so that a file opens as fast with a million clients as with ten.
"""

import contextlib
import functools
import io
import itertools
import json
import logging
import sqlite3
import threading
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

_FORMAT = 3
_BLOCK = 256  # Clients whose checksums stand in one row.
_SMALL = 2**24  # Bytes of a file that is checked as a whole when it is opened.
_SCHEMA = (
    "CREATE TABLE about (key TEXT PRIMARY KEY, value TEXT)",
    "CREATE TABLE servers "
    "(round INTEGER PRIMARY KEY, rows INTEGER, blocks BLOB, checksum INTEGER, state BLOB)",
    "CREATE TABLE blocks (block INTEGER PRIMARY KEY, checksums BLOB)",
    "CREATE TABLE clients (owner INTEGER PRIMARY KEY, round INTEGER, value BLOB)",
    "CREATE TABLE rows "
    "(owner TEXT, round INTEGER, checksum INTEGER, value BLOB, PRIMARY KEY (owner, round))",
)


class CheckpointError(RuntimeError):
    """A checkpoint file cannot be used: damaged, in use, or of another run."""


def encode(structure: Any) -> bytes:
    """Serialises the leaves of a structure of arrays, without pickle."""
    parts: list[bytes] = []
    for leaf in tf.nest.flatten(structure):
        array = np.asarray(leaf)
        if array.dtype.kind not in "biufcSU":
            raise TypeError(f"Values of dtype {array.dtype} cannot be kept in a checkpoint.")
        parts += [_header(array.dtype, array.shape), array.tobytes()]
    return b"".join(parts)


@functools.lru_cache(maxsize=1024)
def _header(dtype: np.dtype, shape: tuple[int, ...]) -> bytes:
    """What NumPy writes before an array's values; for small states most of the work."""
    buffer, described = io.BytesIO(), np.lib.format.dtype_to_descr(dtype)
    header = {"descr": described, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(buffer, header)
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

    def __init__(self, path: Path, config: Mapping[str, Any]):
        """Opens the file, or makes it.

        Args:
          path: The file.
          config: What defines the run (JSON values): a file made with another
            one is refused.

        Raises:
          CheckpointError: If the file is damaged, in use by another process, or
            of a run with another `config`.
        """
        self._path = Path(path)
        self._path.parent.mkdir(parents=True, exist_ok=True)
        interrupted = _is_hot(Path(f"{path}-journal"))
        # One thread may look up client states while another saves.
        self._lock = threading.RLock()
        self._rows = 0  # The checksums of all rows of tables in one.
        self._blocks = np.zeros(0, np.uint32)  # The checksum of each block of clients.
        self._db = sqlite3.connect(
            self._path, isolation_level=None, timeout=1.0, check_same_thread=False
        )
        try:
            self._open(config)
        # SQLite may quote damaged bytes, which are no text.
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
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
        self._db.execute("PRAGMA cache_size = -16384")  # KB: inner pages of a million clients.
        self._db.execute("BEGIN EXCLUSIVE")
        tables = self._db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if not tables:
            for statement in _SCHEMA:
                self._db.execute(statement)
            self._put_about(config)
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
        if different and self.latest_round() is None:  # No round of that run was kept.
            self._put_about(config)
            self._commit()
        elif different:
            told = {k: f"{k}: {saved.get(k)!r} there, {wanted.get(k)!r} now" for k in different}
            for name in [name for name in told if name.endswith("_fingerprint")]:
                told[name] = f"another content of {name.removesuffix('_fingerprint')}"
            changes = "; ".join(told[name] for name in sorted(told))
            raise CheckpointError(
                f"Give another output folder, or delete this one: {self._path} belongs to a run "
                f"with other settings ({changes})."
            )

    def _put_about(self, config: Mapping[str, Any]) -> None:
        about = {"format": str(_FORMAT), "config": json.dumps(dict(config))}
        about["checksum"] = str(_checksum(about["config"]))
        self._db.executemany("INSERT OR REPLACE INTO about VALUES (?, ?)", about.items())

    def _check_file(self) -> None:
        # SQLite itself takes what is missing of the last page for zeros.
        expected = self._pragma("page_count") * self._pragma("page_size")
        if (found := self._path.stat().st_size) < expected:
            raise sqlite3.DatabaseError(f"{found} of {expected} bytes")
        if found <= _SMALL and (state := self._pragma("integrity_check(1)")) != "ok":
            raise sqlite3.DatabaseError(state)

    def _check_completeness(self) -> None:
        """Notices that rows are missing; a client's state is checked when it is read."""
        if self.latest_round() is not None:
            self._rows, blocks, _ = self._server()
            self._blocks = np.frombuffer(blocks, np.uint32).copy()
        missing = self._rows
        for owner, round_num, checksum, text in self._db.execute("SELECT * FROM rows"):
            _check(checksum, owner, round_num, text)
            missing ^= checksum
        if missing:
            raise sqlite3.DatabaseError("rows of tables are missing")
        if self._path.stat().st_size <= _SMALL:
            found = sum(np.count_nonzero(self._checksums(b)) for b in range(len(self._blocks)))
            if found != self._db.execute("SELECT count(*) FROM clients").fetchone()[0]:
                raise sqlite3.DatabaseError("states of clients are missing")

    def _pragma(self, name: str) -> Any:
        return self._db.execute(f"PRAGMA {name}").fetchone()[0]

    def _commit(self) -> None:
        self._db.execute("COMMIT")
        self._db.execute("BEGIN IMMEDIATE")

    def latest_round(self) -> int | None:
        """Returns the last checkpoint's round, or None."""
        return self._db.execute("SELECT max(round) FROM servers").fetchone()[0]

    def server_state(self, like: Any) -> Any:
        """Returns the last checkpoint's server state, with the structure of `like`."""
        with self._naming_the_file():
            return decode(self._server()[2], like)

    def _server(self) -> tuple[int, bytes, bytes]:
        """The checksums of the last checkpoint, and its encoded state."""
        query = "SELECT * FROM servers"  # There is one.
        round_num, rows, blocks, checksum, state = self._db.execute(query).fetchone()
        _check(checksum, round_num, rows, blocks, state)
        return rows, blocks, state

    def client_state(self, client: int) -> bytes | None:
        """Returns a client's newest state, as `encode` made it, or None."""
        with self._naming_the_file():
            checksum = self._checksums(client // _BLOCK)[client % _BLOCK]
            if not checksum:
                return None
            query = "SELECT round, value FROM clients WHERE owner = ?"
            round_num, state = self._db.execute(query, (int(client),)).fetchone() or (None, None)
            _check(checksum, int(client), round_num, state)
            return state

    def _checksums(self, block: int) -> np.ndarray:
        """The checksums of a block's clients, uint32; 0 where there is no state."""
        query = "SELECT checksums FROM blocks WHERE block = ?"
        found = self._db.execute(query, (int(block),)).fetchone()
        expected = self._blocks[block] if block < len(self._blocks) else 0
        if (0 if found is None else _checksum(found[0])) != expected:
            raise sqlite3.DatabaseError("checksums of clients' states are damaged or missing")
        return np.zeros(_BLOCK, np.uint32) if found is None else np.frombuffer(found[0], np.uint32)

    @contextlib.contextmanager
    def _naming_the_file(self) -> Iterator[None]:
        """For one thread at a time; what SQLite raises becomes an error that names the file."""
        try:
            with self._lock:
                yield
        except sqlite3.Error as error:
            raise self._error(error) from error

    def _error(self, error: Exception) -> CheckpointError:
        """What SQLite says, and what to do."""
        if "locked" in str(error):
            return CheckpointError(
                f"{self._path} is in use by another process, or by a result of this one that has "
                "not been closed."
            )
        if isinstance(error, sqlite3.ProgrammingError):
            return CheckpointError(f"{self._path} was closed: read clients' states before that.")
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
            for block, own in itertools.groupby(states, lambda one: int(one[0]) // _BLOCK):
                checksums = self._checksums(block).copy()
                for client, state in own:
                    checksums[client % _BLOCK] = _checksum(int(client), round_num, state)
                    self._put("clients", int(client), round_num, state)
                self._put("blocks", block, checksums.tobytes())
                self._blocks.resize(max(len(self._blocks), block + 1), refcheck=False)
                self._blocks[block] = _checksum(checksums.tobytes())

    def put_row(self, name: str, round_num: int, text: str) -> None:
        """Adds a round's lines to the table `name`, or replaces them."""
        with self._naming_the_file():
            query = "SELECT checksum FROM rows WHERE owner = ? AND round = ?"
            for (replaced,) in self._db.execute(query, (name, round_num)):
                self._rows ^= replaced
            checksum = _checksum(name, round_num, text)
            self._put("rows", name, round_num, checksum, text)
            self._rows ^= checksum

    def _put(self, table: str, *values: Any) -> None:
        places = ", ".join("?" * len(values))
        self._db.execute(f"INSERT OR REPLACE INTO {table} VALUES ({places})", values)

    def rows(self, name: str) -> list[tuple[int, str]]:
        """Returns (round, lines) of the table `name`, in order."""
        query = "SELECT * FROM rows WHERE owner = ? ORDER BY round"
        with self._naming_the_file():
            found = self._db.execute(query, (name,)).fetchall()
            for _, round_num, checksum, text in found:
                _check(checksum, name, round_num, text)
            return [(round_num, text) for _, round_num, _, text in found]

    def save(self, round_num: int, server_state: Any) -> None:
        """Makes all that was put since the last save, and this state, a checkpoint."""
        with self._naming_the_file():
            if not self._path.exists() or self._path.stat().st_ino != self._inode:
                raise CheckpointError(
                    f"{self._path} was removed or replaced while the run goes on: what it would "
                    "save is lost. The same command begins anew."
                )
            kept = self._rows, self._blocks.tobytes()
            state = encode(server_state)
            self._db.execute("DELETE FROM servers")
            self._put("servers", round_num, *kept, _checksum(round_num, *kept, state), state)
            self._commit()

    def close(self) -> None:
        """Closes the file, unless it is; what was put since the last save is dropped."""
        with contextlib.suppress(sqlite3.ProgrammingError):  # It was closed before.
            if self._db.in_transaction:  # Not if an interrupt came between two of them.
                self._db.execute("ROLLBACK")
            # A killed program's: SQLite leaves it where nothing was written since. Still locked.
            Path(f"{self._path}-journal").unlink(missing_ok=True)
            self._db.close()


def _checksum(*values: int | str | bytes | None) -> int:
    """Checksum of values, never 0; SQLite itself checks its own structures only."""
    checksum = 0
    for value in values:
        checksum = zlib.crc32(value if isinstance(value, bytes) else repr(value).encode(), checksum)
    return checksum or 1


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
