"""Decode images and embed them with image networks."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from embeddings import modules
from embeddings.examples import UnusableError
from tff_het.datasets import embedding_files

INCEPTION_SIZE = 299


def decode(content: bytes | np.ndarray) -> np.ndarray:
    """Decodes an image to uint8 [height, width, 3].

    Args:
      content: A PNG, JPEG, BMP or GIF file (its first picture), or an image of a data set,
        uint8 [height, width, 1 or 3].

    Raises:
      UnusableError: The file is empty, cut off or not such an image.
      ValueError: The array has another dtype or shape.
    """
    if isinstance(content, np.ndarray):
        return _colours(content)
    if not content:
        raise UnusableError("empty", "the file has no bytes")
    if content[:3] == b"GIF" and not content.rstrip(b"\0").endswith(b";"):
        raise UnusableError("truncated", "a GIF without its end")
    if content[:2] == b"BM" and _has_colour_table(content):
        raise UnusableError("undecodable", "a BMP with a table of colours; save it without one")
    try:
        return tf.io.decode_image(content, channels=3, expand_animations=False).numpy()
    except tf.errors.InvalidArgumentError as error:
        raise UnusableError("undecodable", f"{error.message:.200}") from error


def prepare(images: Sequence[np.ndarray], size: int) -> tf.Tensor:
    """Resizes and scales images for a network.

    Args:
      images: One uint8 [height, width, 3] per image.
      size: Height and width that the network takes, in pixels.

    Returns:
      float32 [n, size, size, 3], 0..1; resized bilinearly, regardless of the aspect ratio.
    """
    if len({image.shape for image in images}) == 1:
        resized = tf.image.resize(np.stack(images), [size, size], method="bilinear")
    else:
        resized = tf.stack([tf.image.resize(image, [size, size], "bilinear") for image in images])
    return resized / 255.0


@dataclasses.dataclass(frozen=True)
class ImageNetwork:
    """Embeds images with a TF-Hub image feature vector module.

    Attributes:
      handle: The module.
      image_size: Height and width that it takes, in pixels.
      batch_size: Images per call.
    """

    handle: str
    image_size: int
    batch_size: int = 128

    @property
    def settings(self) -> dict[str, Any]:
        """What the embeddings depend on, besides module and input."""
        return {"image_size": self.image_size}

    def decode(self, content: bytes | np.ndarray) -> np.ndarray:
        """Decodes an image, see `decode`."""
        return decode(content)

    def size(self, image: np.ndarray) -> int:
        """Returns 1: `batch_size` counts images."""
        return 1

    def padded(self, image: np.ndarray) -> bool:
        """Returns False: images are resized, not padded."""
        return False

    def blank(self) -> np.ndarray:
        """Returns a black image."""
        return np.zeros((self.image_size, self.image_size, 3), np.uint8)

    def embed(self, images: Sequence[np.ndarray]) -> np.ndarray:
        """Embeds images (uint8 [height, width, 3] each); returns float32 [n, dimension]."""
        embedded = modules.feature_vector(self.handle)(prepare(images, self.image_size))
        shape = getattr(embedded, "shape", None)
        wanted = f"[{len(images)}, 1 to {embedding_files.MAX_DIMENSION}]"
        if (
            shape is None
            or (len(shape) != 2 or shape[0] != len(images))
            or not 1 <= shape[1] <= embedding_files.MAX_DIMENSION
        ):
            raise ValueError(
                f"The module {self.handle!r} does not give feature vectors: expected a tensor"
                f" {wanted}; found {shape or type(embedded).__name__}. Pass the handle of an image"
                " feature vector module."
            )
        return embedded.numpy().astype(np.float32, copy=False)


def _has_colour_table(bmp: bytes) -> bool:
    """Whether a BMP's pixels are numbers of colours, which TensorFlow takes for grey levels."""
    end, size, bits = (int.from_bytes(bmp[k : k + 2], "little") for k in (10, 14, 28))
    table = np.frombuffer(bmp[14 + size : end], np.uint8)
    levels = table[: len(table) // 4 * 4].reshape(-1, 4)[:, :3]
    return bits <= 8 and bool((levels != np.arange(len(levels))[:, None]).any())


def _colours(image: np.ndarray) -> np.ndarray:
    if image.dtype != np.uint8 or image.ndim != 3 or image.shape[2] not in (1, 3):
        raise ValueError(
            "Expected images, uint8 [height, width, 1 or 3]; found"
            f" {image.dtype} {list(image.shape)}. Choose a data set of images."
        )
    return np.repeat(image, 3, axis=2) if image.shape[2] == 1 else image
