"""Losses and metrics of one example each; the client work averages them."""

from collections.abc import Mapping, Sequence

import tensorflow as tf

from tff_het.models.model import Batch, Outputs, PerExample


def cross_entropy(batch: Batch, outputs: Outputs) -> tf.Tensor:
    """Softmax cross entropy of `outputs["logits"]` [b, classes] at `batch["y"]` [b], in nats."""
    return tf.nn.sparse_softmax_cross_entropy_with_logits(
        labels=batch["y"], logits=outputs["logits"]
    )


def cross_entropy_of_softmax(batch: Batch, outputs: Outputs) -> tf.Tensor:
    """Cross entropy of the softmax of the logits, taken for logits once more.

    As in the code of LG-FedAvg (Liang et al. 2019), where the network ends in a softmax and the
    loss expects logits; it cannot fall below log(e + classes - 1) - 1 nats.
    """
    probabilities = tf.nn.softmax(outputs["logits"])
    return tf.nn.sparse_softmax_cross_entropy_with_logits(labels=batch["y"], logits=probabilities)


def class_weighted(weights: Sequence[float]) -> PerExample:
    """Cross entropy, times the weight of the label's class; as Keras's `class_weight`."""

    def weighted(batch: Batch, outputs: Outputs) -> tf.Tensor:
        return tf.gather(tf.constant(weights, tf.float32), batch["y"]) * cross_entropy(
            batch, outputs
        )

    return weighted


def accuracy(batch: Batch, outputs: Outputs) -> tf.Tensor:
    """1 where the highest logit is the label's, else 0."""
    best = tf.argmax(outputs["logits"], axis=-1, output_type=batch["y"].dtype)
    return tf.cast(tf.equal(best, batch["y"]), tf.float32)


METRICS: Mapping[str, PerExample] = {"accuracy": accuracy}
"""What is reported beside the loss by default."""
