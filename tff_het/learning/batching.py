"""Selects the examples of each batch of a client's local training."""

import tensorflow as tf


def plan(
    num_examples: tf.Tensor, batch_size: int, steps: tf.Tensor, seed: tf.Tensor, *, shuffle: bool
) -> tuple[tf.Tensor, tf.Tensor]:
    """Lays out all batches of a client before the first one is taken.

    Every pass visits each example once, in an order of its own. The last batch
    of a pass is short where the batch size does not divide the examples; it is
    filled up with examples of weight 0 so that all batches have one shape. Those
    are the pass's first examples once more: what layers compute over a batch
    (batch normalisation) includes them, and is then that of ordinary examples.

    Args:
      num_examples: int32 [].
      batch_size: Examples a batch.
      steps: int32 [], how many batches are needed.
      seed: int32 [2].
      shuffle: Whether passes are shuffled, or keep the order of the examples.

    Returns:
      Indices int32 [steps, batch_size] and weights float32 [steps, batch_size].
    """
    a_pass = -(-num_examples // batch_size)
    # Both limits are for clients without examples, which take no steps.
    passes = tf.maximum(tf.math.floordiv(steps + a_pass - 1, tf.maximum(a_pass, 1)), 0)
    places = tf.range(a_pass * batch_size)
    if shuffle:
        keys = tf.random.stateless_uniform([passes, num_examples], seed)
        order = tf.argsort(keys, axis=-1)
    else:
        order = tf.tile(tf.range(num_examples)[tf.newaxis], [passes, 1])
    indices = tf.gather(order, places % tf.maximum(num_examples, 1), axis=1)
    weights = tf.tile(tf.cast(places < num_examples, tf.float32)[tf.newaxis], [passes, 1])
    shape = [passes * a_pass, batch_size]
    return tf.reshape(indices, shape)[:steps], tf.reshape(weights, shape)[:steps]
