"""Augmentation on the fly: functions of (images, seed), vectorised over the batch."""

from collections.abc import Callable

import tensorflow as tf

Augmentation = Callable[[tf.Tensor, tf.Tensor], tf.Tensor]


def crop_and_flip(padding: int = 4) -> Augmentation:
    """Random crops of images padded with zeros, and random mirror images, as usual for CIFAR-10.

    Args:
      padding: Pixels added at each side before the crop to the old size.

    Returns:
      A function of images [b, H, W, C] (any dtype) and an int32 [2] seed that
      gives images of the same shape and dtype; each one has its own offsets and
      is mirrored with probability 1/2.

    Raises:
      ValueError: If `padding` is negative.
    """
    if padding < 0:
        raise ValueError(f"The padding is a number of pixels >= 0, found {padding}.")

    def augment(images: tf.Tensor, seed: tf.Tensor) -> tf.Tensor:
        if images.shape.rank != 4:
            raise ValueError(f"Crop and flip need images [b, H, W, C], found {images.shape}.")
        batch, height, width = tf.shape(images)[0], images.shape[1], images.shape[2]
        crop_seed, flip_seed = tf.unstack(tf.random.experimental.stateless_split(seed, 2))
        draws = tf.random.stateless_uniform(
            [2, batch], crop_seed, maxval=2 * padding + 1, dtype=tf.int32
        )
        flip = tf.random.stateless_uniform([batch], flip_seed) < 0.5
        rows = draws[0][:, tf.newaxis] + tf.range(height)  # [b, H]
        columns = tf.range(width)[tf.newaxis]
        columns = tf.where(flip[:, tf.newaxis], width - 1 - columns, columns)
        columns = draws[1][:, tf.newaxis] + columns  # [b, W]
        padded = tf.pad(images, [[0, 0], [padding, padding], [padding, padding], [0, 0]])
        return tf.gather(tf.gather(padded, rows, batch_dims=1), columns, axis=2, batch_dims=1)

    return augment
