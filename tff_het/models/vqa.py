"""Networks that answer questions about images: an LSTM over words, and a product with the image.

The baseline of S. Antol et al., VQA: Visual Question Answering (2015), "deeper LSTM Q", without the
norm of the image features, as P. P. Liang et al. (2019), section 7.1.3, take it: their global model
is the last layer of each channel and the two layers behind the product. Here all of these but the
output have the activation of the layers that a method asks for (ReLU), rather than tanh.
"""

import dataclasses
from collections.abc import Mapping

import tensorflow as tf

from tff_het.backend.names import keras
from tff_het.models.layers import Layers

IMAGE, QUESTION = "x", "question"


class LSTM(keras.layers.Layer):
    """Long short-term memory (Hochreiter and Schmidhuber 1997), with the states of all steps.

    Variables are those of Keras's own layer, in its order. That layer's call is a function of
    TensorFlow's, which would keep the values of the first call (see `keras_model.from_keras`).
    """

    def __init__(self, units: int, **kwargs):
        super().__init__(**kwargs)
        self._units = units

    def build(self, input_shape) -> None:
        units = self._units
        gates = 4 * units  # Input, forget, candidate, output.
        self.kernel = self.add_weight(name="kernel", shape=(input_shape[-1], gates))
        self.recurrent_kernel = self.add_weight(
            name="recurrent_kernel", shape=(units, gates), initializer="orthogonal"
        )
        self.bias = self.add_weight(name="bias", shape=(gates,), initializer=_forget_nothing)
        super().build(input_shape)

    def call(self, inputs: tf.Tensor, is_word: tf.Tensor) -> tf.Tensor:
        """Runs over the steps of inputs [b, t, features], of which some are words: bool [b, t].

        Returns:
          Hidden states and, behind them, cell states: [b, t, 2 * units], 0 behind the last word.
        """
        # All steps in one product; the loop is unrolled, since questions are short.
        projected = tf.tensordot(inputs, self.kernel, 1) + self.bias
        hidden = cell = tf.zeros([tf.shape(inputs)[0], self._units], inputs.dtype)
        states = []
        for step in tf.unstack(projected, axis=1):
            gates = step + tf.matmul(hidden, self.recurrent_kernel)
            take, keep, candidate, show = tf.split(gates, 4, axis=1)
            cell = tf.sigmoid(keep) * cell + tf.sigmoid(take) * tf.tanh(candidate)
            hidden = tf.sigmoid(show) * tf.tanh(cell)
            states.append(tf.concat([hidden, cell], axis=1))
        return tf.stack(states, axis=1) * tf.cast(is_word, inputs.dtype)[:, :, None]


@dataclasses.dataclass(frozen=True)
class VQANetwork:
    """The network, or one of its channels alone.

    Attributes:
      word_units: Width of the embedding of a word.
      lstm_units: Of each of the two layers.
      units: Of the last layer of each channel, whose product is taken.
      fused_units: Of the hidden layer behind the product.
      inputs: The columns that it reads: the image, the question or both.
    """

    word_units: int
    lstm_units: int
    units: int
    fused_units: int
    inputs: tuple[str, ...] = (IMAGE, QUESTION)

    def __call__(
        self,
        columns: Mapping[str, tf.Tensor],
        num_classes: int,
        layers: Layers,
        vocabulary_size: int = 0,
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Builds the network; `vocabulary_size` counts the words of the questions."""
        channels = []
        if IMAGE in self.inputs:
            image = keras.layers.Flatten()(columns[IMAGE])
            channels.append(layers.dense(self.units, "image_dense")(image))
        if QUESTION in self.inputs:
            question = self._states(columns[QUESTION], vocabulary_size)
            channels.append(layers.dense(self.units, "question_dense")(question))
        fused = channels[0] if len(channels) == 1 else keras.layers.Multiply()(channels)
        hidden = layers.dense(self.fused_units, "fused_dense")(fused)
        return hidden, layers.output(num_classes)(hidden)

    def _states(self, question: tf.Tensor, vocabulary_size: int) -> tf.Tensor:
        """Hidden and cell states of both layers at the last word: [b, 4 * lstm_units]."""
        words = keras.layers.Embedding(vocabulary_size, self.word_units, name="word_embedding")
        is_word = question != 0
        first = LSTM(self.lstm_units, name="lstm_1")(words(question), is_word)
        second = LSTM(self.lstm_units, name="lstm_2")(first[:, :, : self.lstm_units], is_word)
        length = tf.reduce_sum(tf.cast(is_word, tf.int32), axis=1)
        at_last = tf.one_hot(length - 1, question.shape[1])[:, :, None]  # [b, t, 1]
        return tf.reduce_sum(tf.concat([first, second], axis=2) * at_last, axis=1)


def _forget_nothing(shape, dtype=None) -> tf.Tensor:
    """Biases of 1 for the forget gate, 0 for the others."""
    ones = tf.ones([shape[0] // 4], dtype)
    return tf.concat([0 * ones, ones, 0 * ones, 0 * ones], axis=0)
