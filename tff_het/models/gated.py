"""Gated layers that are shifted by what belongs to a client (CGAU).

L. Rieger, R. Høegh, L. K. Hansen: Client Adaptation improves Federated Learning with Simulated
Non-IID Clients (2020), eq. (1):

    z = tanh(W_f^T x + V_f^T h) * sigmoid(W_g^T x + V_g^T h)

With h one-hot, V_f^T h is a row of V_f: a vector [units] for each client, its *conditioning*. It is
0 in the beginning, so that a client never met is served without.
"""

import dataclasses
import functools
from collections.abc import Callable

import tensorflow as tf

from tff_het.backend.names import keras
from tff_het.models import calling
from tff_het.models.layers import Layers


def is_conditioning(path: str) -> bool:
    """Whether the variable with this path is a client's conditioning."""
    return path.endswith("conditioning")


class _Conditioned(keras.layers.Layer):
    """A layer with vectors of which every client has its own.

    Either the variables are the vectors themselves, [units] (to be kept as local ones), or they
    hold those of all clients, [num_clients, units], of which a call takes its client's row. They
    begin at 0; or, `drawn`, as a dense layer on the one-hot client does, with a bias beside them.
    """

    def __init__(self, num_clients: int | None, drawn: bool = False, **kwargs):
        super().__init__(**kwargs)
        self._num_clients, self._drawn = num_clients, drawn
        self.client_is_input = num_clients is not None

    def _add_conditioning(self, name: str, units: int) -> list[tf.Variable]:
        shape = (units,) if self._num_clients is None else (self._num_clients, units)
        initializer = "glorot_uniform" if self._drawn else "zeros"
        vectors = [self.add_weight(name=name, shape=shape, initializer=initializer)]
        if self._drawn:
            vectors.append(self.add_weight(f"{name}_bias", [units], initializer="zeros"))
        return vectors

    def _of_client(self, conditioning: list[tf.Variable]) -> tf.Tensor:
        """The vector [units] of the client whose call this is."""
        vectors, *bias = map(tf.convert_to_tensor, conditioning)
        if self._num_clients is not None:
            vectors = tf.gather(vectors, calling.current(self.name).client.index)
        return tf.add_n([vectors, *bias]) if bias else vectors


class Gated(_Conditioned):
    """tanh(filter(x) + v_f) * sigmoid(gate(x) + v_g), v_f and v_g being the client's.

    Called with [b, ..., features], gives [b, ..., units].
    """

    def __init__(
        self,
        linear: Callable[..., keras.layers.Layer],
        units: int,
        num_clients: int | None = None,
        drawn: bool = False,
        **kwargs,
    ):
        """Initialises the layer.

        Args:
          linear: Makes a linear layer called `name` with `units` outputs: the filter, W_f, and the
            gate, W_g.
          units: N.
          num_clients: K, if the conditioning of all clients is part of the layer.
          drawn: Whether conditioning begins at random, with a bias.
          **kwargs: As `keras.layers.Layer`.
        """
        super().__init__(num_clients, drawn, **kwargs)
        self.filter = linear(name="filter")
        self.gate = linear(name="gate")
        self._units = units

    def build(self, input_shape) -> None:
        self.filter_conditioning = self._add_conditioning("filter_conditioning", self._units)
        self.gate_conditioning = self._add_conditioning("gate_conditioning", self._units)
        super().build(input_shape)

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        modulation = self._of_client(self.filter_conditioning)  # [units]
        expression = self._of_client(self.gate_conditioning)  # [units]
        filtered = tf.tanh(self.filter(inputs) + modulation)
        return filtered * tf.sigmoid(self.gate(inputs) + expression)


class ConditionedOutput(_Conditioned):
    """Logits [b, classes] = W x + b + v, v being the client's."""

    def __init__(self, num_classes: int, num_clients: int | None, bias: bool, **kwargs):
        super().__init__(num_clients, **kwargs)
        self.linear = keras.layers.Dense(num_classes, use_bias=bias, name="linear")
        self._num_classes = num_classes

    def build(self, input_shape) -> None:
        self.conditioning = self._add_conditioning("conditioning", self._num_classes)
        super().build(input_shape)

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        return self.linear(inputs) + self._of_client(self.conditioning)


@dataclasses.dataclass(frozen=True)
class GatedLayers(Layers):
    """Gated layers in the place of those with ReLU.

    Attributes:
      num_clients: K, if the conditioning of all clients is part of the layers;
        None: each client keeps its own (the variables of `is_conditioning`).
      output_too: Whether the logits are shifted as well.
      drawn: Whether conditioning begins at random, with a bias, instead of at 0 without.
    """

    num_clients: int | None = None
    output_too: bool = False
    drawn: bool = False

    def dense(self, units: int, name: str) -> keras.layers.Layer:
        return self._gated(name, keras.layers.Dense, units)

    def conv(self, filters: int, size: int, name: str, padding: str = "same") -> keras.layers.Layer:
        return self._gated(name, keras.layers.Conv2D, filters, kernel_size=size, padding=padding)

    def linear_conv(
        self, filters: int, size: int, name: str, padding: str = "same"
    ) -> keras.layers.Layer:
        raise ValueError(
            f"Layer {name} is normalised before its activation, and a gated layer has two of its "
            "own: take the same network without batch normalisation."
        )

    def conv1d(self, filters: int, size: int, name: str) -> keras.layers.Layer:
        return self._gated(name, keras.layers.Conv1D, filters, kernel_size=size)

    def output(self, num_classes: int) -> keras.layers.Layer:
        if not self.output_too:
            return super().output(num_classes)
        own = {"drawn": self.drawn, "name": "output"}
        return ConditionedOutput(num_classes, self.num_clients, self.bias, **own)

    def _gated(self, name: str, kind: type, units: int, **settings) -> keras.layers.Layer:
        linear = functools.partial(kind, units, use_bias=self.bias, **settings)
        return Gated(linear, units, self.num_clients, self.drawn, name=name)
