"""What folders hold, on any file system that TensorFlow reads."""

import tensorflow as tf


def names(folder: str) -> list[str]:
    """Names of the files and folders in a folder, sorted; none if there is no such folder.

    Raises:
      ValueError: A name is not UTF-8, which TensorFlow asks for.
    """
    if not tf.io.gfile.isdir(folder):
        return []
    try:
        return sorted(name.rstrip("/") for name in tf.io.gfile.listdir(folder))
    except UnicodeDecodeError as error:
        raise ValueError(
            f"Expected names in UTF-8 in {folder}; found {error.object!r}. Rename it."
        ) from error
