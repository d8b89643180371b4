"""Where results go: beside the final place while a job runs, there when all is done."""

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from typing import Any

import tensorflow as tf

from tff_het.datasets import embedding_files

ERRORS = "errors.jsonl"
# The entries of metadata.json by which a job knows its own result.
IDENTITY = ("format", "model", "module_fingerprint", "input_fingerprint", "settings")


class Output:
    """A job's output folder, on any file system that TensorFlow reads and writes."""

    def __init__(self, path: str, identity: Mapping[str, Any]):
        """Names the folder; nothing is touched.

        Args:
          path: The folder.
          identity: What defines the result, by the names in `IDENTITY`.
        """
        self.path = path.rstrip("/") or "/"
        self._identity = {key: identity[key] for key in IDENTITY}
        digest = hashlib.sha256(json.dumps(self._identity, sort_keys=True).encode())
        # Two jobs with different results must not share it.
        self.partial = f"{self.path}.partial-{digest.hexdigest()[:8]}"
        self.errors = f"{self.path}.{ERRORS}"

    def is_complete(self, *, overwrite: bool) -> bool:
        """Whether this job's result is there already.

        Args:
          overwrite: Whether another result, or this one, may be replaced: it is never complete.

        Raises:
          ValueError: Something else is there.
        """
        if not tf.io.gfile.exists(self.path) or _is_empty_folder(self.path):
            return False
        found = self._found()
        names = found.get("files", {})
        if overwrite:
            ours = {embedding_files.METADATA, ERRORS, *names}
            foreign = [
                name
                for name in sorted(tf.io.gfile.listdir(self.path))
                if name not in ours or tf.io.gfile.isdir(os.path.join(self.path, name))
            ]
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
        missing = [n for n in names if not tf.io.gfile.exists(os.path.join(self.path, n))]
        if missing:
            raise ValueError(
                f"{self.path} is damaged: expected {len(names)} files; missing: {missing[0]} and"
                f" {len(missing) - 1} more. Give --overwrite."
            )
        return True

    def begin(self) -> None:
        """Makes an empty folder to work in; what killed jobs have left goes."""
        for left in tf.io.gfile.glob(f"{self.path}.partial-*"):
            tf.io.gfile.rmtree(left)
        if tf.io.gfile.exists(self.errors):
            tf.io.gfile.remove(self.errors)
        tf.io.gfile.makedirs(self.partial)

    def fail(self, skipped: Iterable[Mapping[str, str]]) -> None:
        """Leaves the list of skipped examples beside the folder, of which there is none."""
        _write_lines(self.errors, skipped)

    def finish(self, metadata: Mapping[str, Any], skipped: Iterable[Mapping[str, str]]) -> None:
        """Completes the folder and moves it to its place."""
        _write_lines(os.path.join(self.partial, ERRORS), skipped)
        text = json.dumps(metadata, indent=2, allow_nan=False, ensure_ascii=False) + "\n"
        with tf.io.gfile.GFile(os.path.join(self.partial, embedding_files.METADATA), "w") as file:
            file.write(text)
        replaced = f"{self.partial}.replaced"
        if tf.io.gfile.exists(self.path):
            tf.io.gfile.rename(self.path, replaced)
        tf.io.gfile.rename(self.partial, self.path)
        if tf.io.gfile.exists(replaced):
            tf.io.gfile.rmtree(replaced)

    def clean(self) -> None:
        """Removes the folder that was worked in, if it is still there."""
        if tf.io.gfile.exists(self.partial):
            tf.io.gfile.rmtree(self.partial)

    def _found(self) -> dict[str, Any]:
        """The metadata of what is there."""
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


def _is_empty_folder(path: str) -> bool:
    return tf.io.gfile.isdir(path) and not tf.io.gfile.listdir(path)


def _write_lines(path: str, entries: Iterable[Mapping[str, str]]) -> None:
    with tf.io.gfile.GFile(path, "w") as file:
        file.write("".join(json.dumps(entry, ensure_ascii=False) + "\n" for entry in entries))
