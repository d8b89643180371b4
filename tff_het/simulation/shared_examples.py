"""Clients' examples in a folder that several machines see, so that they need not be sent."""

import contextlib
import hashlib
import os
import secrets
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tff_het.learning import example_files


class SharedFile(NamedTuple):
    """One client's examples.

    Attributes:
        path: Where they stand.
        num_examples: How many they are.
    """

    path: str
    num_examples: int


class SharedExamples:
    """A folder of clients' examples (`learning.example_files`).

    A file's name has the client's index and a hash of the content, so several runs can share a
    folder, and a file that is there is not written again. Nothing is ever deleted.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        """Takes a folder, which all machines have to see under the same path.

        Raises:
            FileNotFoundError: If it does not exist here.
        """
        self._folder = Path(folder).absolute()
        if not self._folder.is_dir():
            raise FileNotFoundError(f"Expected a folder for shared examples at {self._folder}.")

    def put(self, client: int, examples: Mapping[str, Any], spec: example_files.Spec) -> SharedFile:
        """Writes a client's examples, unless they are there.

        Raises:
            ValueError: As `example_files.to_bytes`.
        """
        parts = example_files.to_bytes(examples, spec)
        content = hashlib.sha256()
        for part in parts:
            content.update(part)
        path = self._folder / f"{client}-{content.hexdigest()}"
        if not path.exists():
            partial = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
            with partial.open("wb") as file:
                file.writelines(parts)
            os.replace(partial, path)  # Complete, or not there.
        return SharedFile(str(path), len(next(iter(examples.values()))))

    @contextlib.contextmanager
    def probe(self) -> Iterator[str]:
        """The path of a file for others to try and read, which is there within the block."""
        path = self._folder / f".probe.{secrets.token_hex(4)}"
        path.write_text("There.")
        try:
            yield str(path)
        finally:
            path.unlink()
