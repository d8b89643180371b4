"""Predictions that are averaged over draws of what a model draws at random in training."""

import dataclasses

import tensorflow as tf

from tff_het import kept
from tff_het.models.model import Batch, ClientContext, Model, Outputs, Variables


@kept.by_content(size=64)
def averaging_samples(model: Model, num_samples: int) -> Model:
    """Returns the model whose predictions are means over draws (Monte-Carlo integration).

    Logits become the logarithm of the mean of the softmax over `num_samples` calls with training's
    randomness, each with a seed of its own; other outputs their mean. A client that has never
    trained has no posterior to draw from, and predicts without.

    Raises:
      ValueError: If `num_samples` is not positive.
    """
    if num_samples < 1:
        raise ValueError(f"Predictions are averaged over 1 draw or more, found {num_samples}.")

    def predict(
        variables: Variables, batch: Batch, client: ClientContext, seed: tf.Tensor, training: bool
    ) -> Outputs:
        plain = model.predict(variables, batch, client, seed, training)
        if training:
            return plain
        fold_in = tf.random.experimental.stateless_fold_in
        draws = [
            model.predict(variables, batch, client, fold_in(seed, index), True)
            for index in range(num_samples)
        ]

        def mean(name: str) -> tf.Tensor:
            stacked = tf.stack([draw[name] for draw in draws])
            if name == "logits":
                log_sum = tf.reduce_logsumexp(tf.nn.log_softmax(stacked), axis=0)
                return log_sum - tf.math.log(float(num_samples))
            return tf.reduce_mean(stacked, axis=0)

        never = tf.equal(client.rounds, 0)
        return {name: tf.where(never, plain[name], mean(name)) for name in plain}

    return dataclasses.replace(model, predict=predict)
