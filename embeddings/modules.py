"""TF-Hub modules: loaded once per process, and identified by their content."""

import functools
import hashlib
import os
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf
import tensorflow_hub as hub

# For modules in TensorFlow 1's format, which are not callable; the first that exists is used.
_SIGNATURES = ("default", "serving_default")


def resolve(handle: str) -> str:
    """Returns the folder with a module's SavedModel, downloading it if needed.

    Args:
      handle: An address such as https://tfhub.dev/google/yamnet/1, or a folder.

    Raises:
      ValueError: There is no SavedModel, or it could not be downloaded.
    """
    try:
        folder = hub.resolve(handle)
    except Exception as error:  # Of any library: no network, no such address.
        raise _unusable(handle, error) from error
    if not tf.io.gfile.exists(os.path.join(folder, "saved_model.pb")):
        raise _unusable(handle, f"{folder} holds no saved_model.pb")
    return folder


@functools.cache
def load(handle: str) -> Any:
    """Loads a module and keeps it, so that all parts of a job in this process share it.

    Raises:
      ValueError: There is no SavedModel, it could not be downloaded, or it is damaged.
    """
    try:
        return hub.load(resolve(handle))
    except (OSError, RuntimeError, tf.errors.OpError) as error:
        raise _unusable(handle, error) from error


def feature_vector(handle: str) -> Callable[[tf.Tensor], tf.Tensor]:
    """Returns an image module as a function.

    It maps float32 [n, height, width, 3], in 0..1, to [n, dimension].

    Raises:
      ValueError: The module cannot be loaded, or has no such interface.
    """
    loaded = load(handle)
    if callable(loaded):
        return loaded
    name = next((name for name in _SIGNATURES if name in loaded.signatures), None)
    if name is None:
        raise _unusable(
            handle, f"it can neither be called nor has it a signature {' or '.join(_SIGNATURES)}"
        )
    function = loaded.signatures[name]
    inputs, outputs = function.structured_input_signature[1], function.structured_outputs
    output = "default" if "default" in outputs else next(iter(outputs))
    if len(inputs) != 1 or (output != "default" and len(outputs) != 1):
        raise _unusable(handle, f"{name} has inputs {list(inputs)} and outputs {list(outputs)}")
    (input_name,) = inputs
    return lambda images: function(**{input_name: images})[output]


def fingerprint(handle: str) -> str:
    """Returns the SHA-256 (hex) over names and contents of all files of a module's SavedModel.

    Raises:
      ValueError: There is no SavedModel, or it could not be downloaded.
    """
    folder = resolve(handle)
    digest = hashlib.sha256()
    for name in sorted(_file_names(folder)):
        with tf.io.gfile.GFile(os.path.join(folder, name), "rb") as file:
            content = file.read()
        digest.update(f"{len(name.encode())} {name} {len(content)} ".encode())
        digest.update(content)
    return digest.hexdigest()


def _file_names(folder: str) -> Iterator[str]:
    for path, _, names in tf.io.gfile.walk(folder):
        for name in names:
            yield os.path.relpath(os.path.join(path, name), folder)


def _unusable(handle: str, found: object) -> ValueError:
    return ValueError(
        f"Cannot use the module {handle!r}: expected a TF-Hub handle or a folder with a SavedModel;"
        f" found: {found}. Without a network, unpack the module somewhere and pass that folder."
    )
