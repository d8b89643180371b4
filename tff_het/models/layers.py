"""The layers that networks are built from, and dropout that draws from the call's seed."""

import dataclasses

import tensorflow as tf

from tff_het.backend.names import keras
from tff_het.models import calling

# How the names of variables end that say which factors a client uses; evaluation looks for them.
POSTERIOR_LOGITS = "posterior_logits"


@dataclasses.dataclass(frozen=True)
class Layers:
    """The layers of a network: fully connected and convolutional with ReLU, and a linear output.

    A method whose layers are others derives from this class, so that it takes
    every network.

    Attributes:
      bias: Whether they add a bias.
    """

    bias: bool = True

    def dense(self, units: int, name: str) -> keras.layers.Layer:
        """A hidden layer, [b, features] -> [b, units]."""
        return keras.layers.Dense(units, "relu", self.bias, name=name)

    def linear(self, units: int, name: str) -> keras.layers.Layer:
        """A plain hidden layer without activation, in every kind: [b, features] -> [b, units]."""
        return keras.layers.Dense(units, use_bias=self.bias, name=name)

    def conv(self, filters: int, size: int, name: str, padding: str = "same") -> keras.layers.Layer:
        """A convolution with windows size x size, [b, h, w, channels] -> [b, h', w', filters]."""
        return keras.layers.Conv2D(
            filters, size, padding=padding, activation="relu", use_bias=self.bias, name=name
        )

    def linear_conv(
        self, filters: int, size: int, name: str, padding: str = "same"
    ) -> keras.layers.Layer:
        """A plain convolution without activation, in every kind; shapes as `conv`."""
        return keras.layers.Conv2D(filters, size, padding=padding, use_bias=self.bias, name=name)

    def conv1d(self, filters: int, size: int, name: str) -> keras.layers.Layer:
        """A convolution without padding, [b, t, channels] -> [b, t', filters]."""
        return keras.layers.Conv1D(filters, size, activation="relu", use_bias=self.bias, name=name)

    def output(self, num_classes: int) -> keras.layers.Layer:
        """The last layer, [b, features] -> logits [b, classes]."""
        return keras.layers.Dense(num_classes, use_bias=self.bias, name="output")


class Random(keras.layers.Layer):
    """A layer that draws random numbers from the call's seed, and from nothing else."""

    # Keeps several such layers of a model apart; `from_keras` numbers them.
    salt = 0

    def _seed(self) -> tf.Tensor:
        """The call's seed for this layer, int32 [2]."""
        seed = calling.current(self.name).seed
        return tf.random.experimental.stateless_fold_in(seed, self.salt)


class Dropout(Random):
    """Inverted dropout (Srivastava et al. 2014) with a stateless seed.

    Equal seeds drop equal units, whatever ran before or runs beside it. Keras's
    own layer draws from a generator that it shares, which is why models that
    hold it are refused. Called twice in one model, one layer drops the same units.
    """

    def __init__(self, rate: float, **kwargs):
        """Initialises the layer.

        Args:
          rate: Share of the inputs that is set to 0, in [0, 1).
          **kwargs: As `keras.layers.Layer`.

        Raises:
          ValueError: If `rate` is outside of [0, 1).
        """
        super().__init__(**kwargs)
        if not 0.0 <= rate < 1.0:
            raise ValueError(f"A dropout rate lies in [0, 1), found {rate}.")
        self.rate = rate

    def call(self, inputs: tf.Tensor, training: bool = False) -> tf.Tensor:
        if not training or self.rate == 0.0:
            return inputs
        # While Keras builds a functional model it calls the layer on symbols.
        if keras.backend.is_keras_tensor(inputs):
            return inputs
        uniform = tf.random.stateless_uniform(tf.shape(inputs), self._seed())
        kept = tf.cast(uniform >= self.rate, inputs.dtype)
        return inputs * kept / (1.0 - self.rate)

    def get_config(self) -> dict:
        return super().get_config() | {"rate": self.rate}
