"""Files that appear under their name only when they are complete."""

import contextlib
import glob
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

_HOST = socket.gethostname()


@contextlib.contextmanager
def complete(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Gives a file to write to; it appears under its name if the block ends without an error.

    Args:
      path: Its name; a file that is there is replaced. The folder has to exist.

    Raises:
      OSError: If it cannot be written; the error names the file.
    """
    path = Path(path)
    partial = path.with_name(f".{path.name}.{_HOST}.{os.getpid()}.partial")
    with naming(path):
        _clear_away(path)
        try:
            with partial.open("wb") as file:
                yield file
            os.replace(partial, path)
        except BaseException:
            partial.unlink(missing_ok=True)
            raise


def _clear_away(path: Path) -> None:
    """Removes what programs of this machine left that were killed while they wrote this file."""
    for left in path.parent.glob(f".{glob.escape(f'{path.name}.{_HOST}')}.*.partial"):
        try:
            os.kill(int(left.suffixes[-2][1:]), 0)  # Sends nothing; only asks.
        except ProcessLookupError:
            left.unlink(missing_ok=True)
        except (ValueError, PermissionError):
            continue  # Not ours.


@contextlib.contextmanager
def naming(path: str | os.PathLike[str]) -> Iterator[None]:
    """Adds the file's name to the system's errors, which have none where writing fails."""
    try:
        yield
    except OSError as error:
        if error.errno is not None:
            error.filename = str(path)
        raise
