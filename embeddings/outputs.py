"""The output folder: written beside its final place, and moved there when complete."""

import glob
import hashlib
import json
import os
import re
from collections.abc import Iterable, Mapping
from typing import Any

import tensorflow as tf

from embeddings import folders, records
from tff_het.datasets import embedding_files

ERRORS = "errors.jsonl"
# All files of a result.
_OURS = re.compile(r"embeddings-\d+-of-\d+\.tfrecord|errors\.jsonl|metadata\.json")
_REPLACED = ".replaced"
# The entries of metadata.json that identify the result of a job.
IDENTITY = ("format", "model", "module_fingerprint", "input_fingerprint", "settings")


class Output:
    """A job's output folder, on any file system that TensorFlow reads and writes."""

    def __init__(self, path: str, identity: Mapping[str, Any]):
        """Names the folder, without touching it.

        Args:
          path: The folder.
          identity: What defines the result; its keys include `IDENTITY`.
        """
        # Follow links: the link itself must not be replaced.
        self.path = path.rstrip("/") if "://" in path else os.path.realpath(path)
        self._identity = {key: identity[key] for key in IDENTITY}
        digest = hashlib.sha256(json.dumps(self._identity, sort_keys=True).encode())
        # Jobs with different results must not share it.
        self.partial = f"{self.path}.partial-{digest.hexdigest()[:8]}"
        self.errors = f"{self.path}.{ERRORS}"
        self._pattern = f"{glob.escape(self.path)}.partial-{'[0-9a-f]' * 8}"

    def is_complete(self, *, overwrite: bool) -> bool:
        """Whether this job's result exists already.

        Args:
          overwrite: Whether an existing result may be replaced; then nothing counts as complete.

        Raises:
          ValueError: Something else is at the place.
        """
        if not tf.io.gfile.exists(self.path) or _is_empty_folder(self.path):
            return False
        found = self._found()
        if overwrite:
            foreign = [name for name in folders.names(self.path) if not self._is_ours(name)]
            if foreign or not found.keys() >= {*IDENTITY}:
                raise ValueError(
                    f"{self.path} is not replaced: expected embeddings and nothing else; found "
                    f"{foreign[0] if foreign else 'other metadata'}. Give another --output, or "
                    "remove it yourself."
                )
            return False
        different = [key for key in IDENTITY if found.get(key) != self._identity[key]]
        if different:
            raise ValueError(
                f"{self.path} holds other embeddings: expected the same {', '.join(IDENTITY)};"
                f" different: {', '.join(different)}. Give another --output, or --overwrite."
            )
        self._check(found)
        return True

    def begin(self) -> None:
        """Creates an empty folder to work in; call `clean` first."""
        if tf.io.gfile.exists(self.errors):
            tf.io.gfile.remove(self.errors)
        tf.io.gfile.makedirs(self.partial)

    def fail(self, skipped: Iterable[Mapping[str, str]]) -> None:
        """Writes the list of skipped examples beside the folder, which stays away."""
        _write_lines(self.errors, skipped)

    def finish(self, metadata: Mapping[str, Any], skipped: Iterable[Mapping[str, str]]) -> None:
        """Completes the folder and moves it to its place.

        Raises:
          OSError: Files are not there any more, such as where the same job was started again.
        """
        found = {*folders.names(self.partial)}
        if gone := [name for name in metadata["files"] if name not in found]:
            raise OSError(f"{self.partial} has lost {gone[0]}: is the same job running twice?")
        _write_lines(os.path.join(self.partial, ERRORS), skipped)
        text = json.dumps(metadata, indent=2, allow_nan=False, ensure_ascii=False) + "\n"
        with tf.io.gfile.GFile(os.path.join(self.partial, embedding_files.METADATA), "w") as file:
            file.write(text)
        for stray in found - {*metadata["files"]}:  # Half of a shard, of a worker that died.
            tf.io.gfile.remove(os.path.join(self.partial, stray))
        replaced = self.partial + _REPLACED
        if tf.io.gfile.exists(self.path):
            tf.io.gfile.rename(self.path, replaced)
        tf.io.gfile.rename(self.partial, self.path)
        if tf.io.gfile.exists(replaced):
            tf.io.gfile.rmtree(replaced)

    def put_back(self) -> None:
        """Puts back what a killed job was about to replace."""
        for left in tf.io.gfile.glob(self._pattern + _REPLACED):
            if not tf.io.gfile.exists(self.path):
                tf.io.gfile.rename(left, self.path)

    def clean(self) -> None:
        """Removes what this job or killed ones have left beside the folder, after `put_back`."""
        self.put_back()
        for left in tf.io.gfile.glob(self._pattern + "*"):
            tf.io.gfile.rmtree(left)

    def _found(self) -> dict[str, Any]:
        """Reads the metadata of the existing folder."""
        path = os.path.join(self.path, embedding_files.METADATA)
        try:
            with tf.io.gfile.GFile(path) as file:
                found = json.load(file)
        except (OSError, ValueError, tf.errors.OpError) as error:
            raise ValueError(
                f"{self.path} is in the way: expected nothing, an empty folder or embeddings;"
                f" found something without a readable {embedding_files.METADATA}. Give another"
                " --output, or remove it yourself."
            ) from error
        return found if isinstance(found, dict) else {}

    def _is_ours(self, name: str) -> bool:
        path = os.path.join(self.path, name)
        is_file = not (tf.io.gfile.isdir(path) or os.path.islink(path))
        return bool(_OURS.fullmatch(name)) and is_file

    def _check(self, metadata: Mapping[str, Any]) -> None:
        """Raises ValueError if the files do not match metadata.json."""
        try:
            total = records.merge(
                records.summarize(name, list(_records(os.path.join(self.path, name))))
                for name in folders.names(self.path)
                if name.endswith(".tfrecord")
            )
            total.padded = metadata["padded"]
            with tf.io.gfile.GFile(os.path.join(self.path, ERRORS)) as file:
                total.skipped = [json.loads(line) for line in file]
            expected = total.description()
            wrong = [key for key in expected if expected[key] != metadata.get(key)]
        except Exception as error:  # Of any library: files may hold or lack anything.
            raise self._damaged(f"{error!s:.200}") from error
        if wrong:
            raise self._damaged(f"other {', '.join(wrong)}")

    def _damaged(self, found: str) -> ValueError:
        return ValueError(
            f"{self.path} is damaged: expected files as {embedding_files.METADATA} describes them;"
            f" found {found}. Give --overwrite."
        )


def _is_empty_folder(path: str) -> bool:
    return tf.io.gfile.isdir(path) and not folders.names(path)


def _records(path: str) -> Iterable[bytes]:
    return tf.data.TFRecordDataset(path).as_numpy_iterator()


def _write_lines(path: str, entries: Iterable[Mapping[str, str]]) -> None:
    with tf.io.gfile.GFile(path, "w") as file:
        file.write("".join(json.dumps(entry, ensure_ascii=False) + "\n" for entry in entries))
