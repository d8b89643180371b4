"""What local training starts from: the loss on all of a client's examples, and the rate."""

from typing import Any

import tensorflow as tf

from tff_het.learning import batching
from tff_het.learning.descent import LEARNING_RATE_KEY
from tff_het.learning.local_training import LocalTraining
from tff_het.models.model import EXAMPLE_WEIGHT, ClientContext, Model, Variables

# Examples that are looked at together: bounds the memory, and holds small clients up little.
_BATCH_SIZE = 64


def mean_loss(
    model: Model, variables: Variables, examples: Any, client: ClientContext, seed: tf.Tensor
) -> tf.Tensor:
    """Returns the model's loss on all of a client's examples, without dropout, float32 [].

    The mean over examples plus regularisers; 0 without examples.

    Args:
      model: The model.
      variables: Its variables, which stay as they are.
      examples: The client's examples, columns [n, ...].
      client: The client.
      seed: int32 [2], for layers that draw at evaluation too.
    """
    steps = -(-client.num_examples // _BATCH_SIZE)
    indices, weights = batching.plan(client.num_examples, _BATCH_SIZE, steps, seed, shuffle=False)

    def add(step: tf.Tensor, total: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        rows, weight = tf.gather(indices, step), tf.gather(weights, step)
        batch = {name: tf.gather(column, rows) for name, column in examples.items()}
        batch[EXAMPLE_WEIGHT] = weight
        loss = model.loss(variables, batch, client, seed, False).loss
        return step + 1, total + tf.reduce_sum(weight) * loss

    start = (tf.zeros([], tf.int32), tf.zeros([]))
    _, total = tf.while_loop(lambda step, _: step < steps, add, start)
    return tf.math.divide_no_nan(total, tf.reduce_sum(weights))


def learning_rate(training: LocalTraining, round_num: tf.Tensor) -> tf.Tensor:
    """Returns the learning rate of a round's local training, float32 [].

    Args:
      training: The settings.
      round_num: int32 [], for the learning rate's schedule.

    Raises:
      ValueError: If the optimizer has no learning rate.
    """
    if training.learning_rate is not None:
        return tf.cast(training.learning_rate(round_num), tf.float32)
    state = training.optimizer.initialize([tf.TensorSpec([], tf.float32)])
    hparams = training.optimizer.get_hparams(state)
    if LEARNING_RATE_KEY not in hparams:
        raise ValueError(
            "An optimizer with a learning rate is needed (tff.learning.optimizers.build_sgdm(0.1), "
            f"say); {type(training.optimizer).__name__} has {', '.join(hparams) or 'none'}."
        )
    return tf.convert_to_tensor(hparams[LEARNING_RATE_KEY], tf.float32)
