"""Monte-Carlo dropout: each pass predicts with another randomly drawn sub-network.

Y. Gal, Z. Ghahramani: Dropout as a Bayesian Approximation (2016).
"""

import tensorflow as tf

from tff_het.models.model import Batch, ClientContext, Model, Variables


def probabilities(
    model: Model,
    variables: Variables,
    batch: Batch,
    client: ClientContext,
    seed: tf.Tensor,
    passes: int,
) -> tf.Tensor:
    """Returns what each of several passes says of each example, float32 [passes, b, classes].

    Batch normalisation, too, acts as in training: by the statistics of the batch.

    Args:
      model: The model.
      variables: Its variables, which stay as they are.
      batch: The columns that the model reads, [b, ...].
      client: The client, for models that ask.
      seed: int32 [2]; each pass has one of its own that follows from it.
      passes: Number of passes, 1 or more.
    """

    def one(index: tf.Tensor) -> tf.Tensor:
        own = tf.random.experimental.stateless_fold_in(seed, index)
        return tf.nn.softmax(model.predict(variables, batch, client, own, True)["logits"])

    return tf.map_fn(one, tf.range(passes), fn_output_signature=tf.float32)
