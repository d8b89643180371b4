"""Losses and metrics of one example each; the client work averages them."""

import tensorflow as tf

from tff_het.models.model import Batch, Outputs


def cross_entropy(batch: Batch, outputs: Outputs) -> tf.Tensor:
    """Softmax cross entropy of `outputs["logits"]` [b, classes] at `batch["y"]` [b], in nats."""
    return tf.nn.sparse_softmax_cross_entropy_with_logits(
        labels=batch["y"], logits=outputs["logits"]
    )


def accuracy(batch: Batch, outputs: Outputs) -> tf.Tensor:
    """1 where the highest logit is the label's, else 0."""
    best = tf.argmax(outputs["logits"], axis=-1, output_type=batch["y"].dtype)
    return tf.cast(tf.equal(best, batch["y"]), tf.float32)
