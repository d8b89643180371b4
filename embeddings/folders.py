"""List folders on any file system that TensorFlow reads."""

import tensorflow as tf


def names(folder: str) -> list[str]:
    """Returns the sorted names of files and folders in a folder; none if it does not exist.

    Raises:
      ValueError: A name is not UTF-8, which TensorFlow requires.
    """
    if not tf.io.gfile.isdir(folder):
        return []
    try:
        return sorted(name.rstrip("/") for name in tf.io.gfile.listdir(folder))
    except UnicodeDecodeError as error:
        raise ValueError(
            f"Expected names in UTF-8 in {folder}; found {error.object!r}. Rename it."
        ) from error
