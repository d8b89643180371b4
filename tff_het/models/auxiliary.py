"""Auxiliary losses on a local representation; their small networks stay local.

Liang et al. (2019), §2.1 and Figure 1 (b) to (d): the representation is trained to keep the label
(supervised), the data (autoencoder) or a label made of the data themselves (self-supervised), in
the same steps as for the predictions (eq. 1).
"""

import dataclasses
import math
from collections.abc import Callable, Mapping

import tensorflow as tf

from tff_het.backend.names import keras
from tff_het.models import calling
from tff_het.models.architectures import Architecture
from tff_het.models.model import Batch, Outputs, PerExample

_TARGET, _GUESS = "auxiliary_target", "auxiliary_guess"
_LAYER = "auxiliary"


def attach(
    architecture: Architecture, name: str, local: tuple[str, ...], weight: float
) -> Architecture:
    """Returns the architecture with a local loss added to its own.

    Args:
      architecture: The network.
      name: One of `LOCAL_LOSSES`.
      local: Names of the local layers, in any order. The activations of the last of them are
        the representation.
      weight: What the local loss counts.

    Raises:
      ValueError: If there is no such loss, the weight is not positive, the local layers are not
        the network's first, or are none or all of them, or images are not square.
    """
    if name not in LOCAL_LOSSES:
        raise ValueError(f"local_loss must be one of {', '.join(LOCAL_LOSSES)}; found {name!r}.")
    if not 0 < weight < math.inf:
        raise ValueError(f"The weight of a local loss is positive, found {weight}.")
    first = architecture.layers[: len(local)]
    if not local or set(first) != set(local) or first == architecture.layers:
        raise ValueError(
            "A local loss is one on the representation that the first layers give, so these have "
            f"to be local: some of {', '.join(architecture.layers)}, from the first on; found "
            f"{', '.join(local) or 'none'}."
        )
    network, local_loss = LOCAL_LOSSES[name]

    def build(kind) -> keras.Model:
        base = architecture.build(kind)
        added = network(architecture, base, first[-1])
        return keras.Model(base.inputs, {**base.output, **added}, name=base.name)

    def loss(batch: Batch, outputs: Outputs) -> tf.Tensor:
        return architecture.loss(batch, outputs) + weight * local_loss(batch, outputs)

    return dataclasses.replace(
        architecture,
        build=build,
        loss=loss,
        metrics={**architecture.metrics, "local_loss": local_loss},
        auxiliary=(*architecture.auxiliary, _LAYER),
        training_outputs=(*architecture.training_outputs, _TARGET, _GUESS),
    )


def _guess(representation: tf.Tensor, units: int) -> tf.Tensor:
    flat = keras.layers.Flatten()(representation)
    return keras.layers.Dense(units, name=_LAYER)(flat)


def _label(architecture: Architecture, base: keras.Model, layer: str):
    """The label is guessed: a classifier on the representation."""
    del architecture
    return {_GUESS: _guess(base.get_layer(layer).output, base.output["logits"].shape[-1])}


def _label_loss(batch: Batch, outputs: Outputs) -> tf.Tensor:
    return tf.nn.sparse_softmax_cross_entropy_with_logits(batch["y"], outputs[_GUESS])


def _input(architecture: Architecture, base: keras.Model, layer: str):
    """Decodes the input, scaled as the data set says, from the representation."""
    x = keras.layers.Flatten()(architecture.scaled(_image(base)))
    return {_GUESS: _guess(base.get_layer(layer).output, x.shape[-1]), _TARGET: x}


def _squared_error(batch: Batch, outputs: Outputs) -> tf.Tensor:
    del batch
    return tf.reduce_mean(tf.math.squared_difference(outputs[_GUESS], outputs[_TARGET]), axis=-1)


def _rotation(architecture: Architecture, base: keras.Model, layer: str):
    """Images are turned, and by how much is guessed (Gidaris et al. 2018)."""
    del architecture
    x = _image(base)
    if len(x.shape) != 4 or x.shape[1] != x.shape[2]:
        raise ValueError(
            "The local loss 'rotation' turns square images [size, size, channels], found examples "
            f"of shape {list(x.shape[1:])}."
        )
    turned, quarters = RandomRotation(name="auxiliary_rotation")(x)
    encoder = keras.Model(x, base.get_layer(layer).output)
    return {_GUESS: _guess(encoder(turned), 4), _TARGET: quarters}


def _rotation_loss(batch: Batch, outputs: Outputs) -> tf.Tensor:
    del batch
    return tf.nn.sparse_softmax_cross_entropy_with_logits(outputs[_TARGET], outputs[_GUESS])


def _image(base: keras.Model) -> tf.Tensor:
    (symbol, *others) = base.inputs
    if others or symbol.name != "x":
        raise ValueError(
            "The local losses 'autoencoder' and 'rotation' are on networks whose one input is x; "
            f"found {', '.join(symbol.name for symbol in base.inputs)}. Choose 'supervised'."
        )
    return symbol


class RandomRotation(keras.layers.Layer):
    """Turns each image by a multiple of 90 degrees, drawn with the call's seed.

    [b, size, size, channels] -> the turned images, of the same dtype, and int32 [b], by how
    many quarters of a turn (counterclockwise, as `np.rot90`).
    """

    # Keeps the draw apart from those of dropout layers, which are numbered from 0.
    _SALT = 1_000

    def call(self, inputs: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        shape = tf.shape(inputs)[:1]
        if keras.backend.is_keras_tensor(inputs):
            seed = tf.zeros([2], tf.int32)
        else:
            seed = calling.current(self.name).seed
        seed = tf.random.experimental.stateless_fold_in(seed, self._SALT)
        quarters = tf.random.stateless_uniform(shape, seed, maxval=4, dtype=tf.int32)
        turned = tf.stack([tf.image.rot90(inputs, k) for k in range(4)], axis=1)
        return tf.gather(turned, quarters, axis=1, batch_dims=1), quarters


# (architecture, its Keras model, the name of the representation's layer) -> symbols of what is
# guessed from the representation, and of the truth where it is no column of the examples.
_Network = Callable[[Architecture, keras.Model, str], Mapping[str, tf.Tensor]]

# By name, what is added to the network, and the loss of an example given these symbols' values.
LOCAL_LOSSES: Mapping[str, tuple[_Network, PerExample]] = {
    "supervised": (_label, _label_loss),
    "autoencoder": (_input, _squared_error),
    "rotation": (_rotation, _rotation_loss),
}
