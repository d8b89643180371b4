"""Image data sets through TensorFlow Datasets, for those who have no files of their own."""

import os
import socket
import sys
import urllib.parse

import numpy as np

from tff_het.datasets.dataset import Dataset

OR = " Or leave out data_dir: then it is downloaded."  # For those who gave one without the files.
_SECONDS = 10.0


def announce(name: str, url: str) -> None:
    """Says that a download begins, and sees whether it can: without a network some try for minutes.

    Args:
      name: Of the data set.
      url: Where it comes from.

    Raises:
      OSError: If the host cannot be reached within seconds.
    """
    scheme, host, *_ = urllib.parse.urlsplit(url)
    print(f"Downloading {name!r} from {host} ...", file=sys.stderr, flush=True)
    if not {"http_proxy", "https_proxy"} & {variable.lower() for variable in os.environ}:
        socket.create_connection((host, 80 if scheme == "http" else 443), _SECONDS).close()


def load_images(name: str, class_names: tuple[str, ...], url: str, how_to_get: str) -> Dataset:
    """Downloads (or takes from the TFDS cache) an image classification data set.

    TFDS stores examples in an order of its own, so that a partition made from them differs from
    one made from the original files, although the examples are the same.

    Args:
      name: The name, which must be the same here and in TFDS.
      class_names: One name per class.
      url: Where TFDS downloads it from.
      how_to_get: One sentence for the error message.

    Raises:
      RuntimeError: TFDS is not installed or could not provide the data.
    """
    try:
        # Imported here: it takes seconds, and those who have files need no TensorFlow.
        import tensorflow_datasets as tfds

        if not tfds.builder(name).is_prepared():
            announce(name, url)
        train, test = tfds.as_numpy(tfds.load(name, split=["train", "test"], batch_size=-1))
    # TFDS raises errors of many libraries (no network, a checksum): all mean the same here.
    except Exception as error:
        raise RuntimeError(
            f"Could not get {name!r} through TensorFlow Datasets ({type(error).__name__}: {error})."
            f" Pass data_dir to read files instead: {how_to_get}"
        ) from error
    train, test = ({"x": s["image"], "y": s["label"].astype(np.int32)} for s in (train, test))
    return Dataset(name, train, test, class_names, "TensorFlow Datasets")
