"""Networks before it is decided which of their layers are local."""

import collections
import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from tff_het import kept
from tff_het.backend.names import keras
from tff_het.models import keras_model, objectives
from tff_het.models.layers import Layers
from tff_het.models.model import Model, PerExample
from tff_het.models.networks import Network
from tff_het.models.registry import NETWORKS
from tff_het.models.vqa import QUESTION

_FULL_PACKET = 1500  # Bytes, of Ethernet.

# Column -> (dtype, shape of one example).
ElementSpec = Mapping[str, tuple[np.dtype, tuple[int, ...]]]


@dataclasses.dataclass(frozen=True)
class Architecture:
    """A network before it is decided what of it is local.

    Attributes:
      name: Its name in `NETWORKS`.
      build: Builds the Keras model of layers of a kind; it gives `logits` [b, classes]
        and `hidden` [b, units], the activations before the last layer.
      example_spec: Columns of a client's examples.
      layers: Names of all layers with variables, from input to output, of whatever kind.
      head: Names of those that classify: the last one.
      loss: What is minimised, per example.
      metrics: What is reported beside it; accuracy by default.
      kind: What the layers are.
      scaled: The symbol that the first layer gets, of that of the column `x`.
      auxiliary: Names of layers beside the network proper (the head of a local loss, an adversary):
        a client's own wherever a method keeps anything at the client.
      training_outputs: Outputs that the loss needs and predictions do not.
      initialization: One of `keras_model.INITIALIZATIONS`.
      opponent: Names of those auxiliary layers that are trained against the rest.
      opponent_loss: What they minimise, per example.
      local_statistics: Whether each client keeps the moving statistics of its batch normalisation,
        whatever else is local (Andreux et al. 2020, Siloed Federated Learning).
    """

    name: str
    build: Callable[[Layers], keras.Model]
    example_spec: Mapping[str, tf.TensorSpec]
    layers: tuple[str, ...]
    head: tuple[str, ...]
    loss: PerExample = objectives.cross_entropy
    metrics: Mapping[str, PerExample] = dataclasses.field(
        default_factory=lambda: objectives.METRICS
    )
    kind: Layers = dataclasses.field(default_factory=Layers)
    scaled: Callable[[tf.Tensor], tf.Tensor] = lambda x: x
    auxiliary: tuple[str, ...] = ()
    training_outputs: tuple[str, ...] = ()
    initialization: str = "glorot"
    opponent: tuple[str, ...] = ()
    opponent_loss: PerExample | None = None
    local_statistics: bool = False

    def model(self, local: keras_model.Local = ()) -> Model:
        """Returns the model with these layers (or variables) local; as `from_keras`.

        Auxiliary layers are local too, unless nothing is.
        """
        if callable(local):
            chosen = local
            local = lambda path: chosen(path) or path.split("/")[0] in self.auxiliary  # noqa: E731
        elif local and not isinstance(local, str):  # Which `from_keras` refuses.
            local = (*local, *self.auxiliary)
        return keras_model.from_keras(
            functools.partial(self.build, self.kind),
            self.example_spec,
            local=local,
            local_statistics=self.local_statistics,
            loss=self.loss,
            metrics=self.metrics,
            training_outputs=self.training_outputs,
            initialization=self.initialization,
            opponent=self.opponent,
            opponent_loss=self.opponent_loss,
        )


def inputs(name: str) -> tuple[str, ...]:
    """The columns that one of `NETWORKS` reads."""
    return _inputs(NETWORKS[name])


def _inputs(network: Network) -> tuple[str, ...]:
    return getattr(network, "inputs", ("x",))


@kept.by_content(size=64)
def make(
    name: str,
    element_spec: ElementSpec,
    num_classes: int,
    network: Network | None = None,
    *,
    statistics: tuple[np.ndarray, np.ndarray] | None = None,
    vocabulary_size: int = 0,
    **options: Any,
) -> Architecture:
    """Returns the architecture for examples of this form.

    The model's first layer scales whole numbers: images of unsigned bytes to [0, 1], packet lengths
    of 16 bits to [-1, 1]. With `statistics` it brings them to mean 0 and variance 1 instead.

    Args:
      name: One of `NETWORKS`, or any name with `network` given.
      element_spec: The columns of an example; the network's inputs are among them.
      num_classes: Width of the output.
      network: A network of one's own.
      statistics: Mean and standard deviation of `x` as it is, for its last axis each
        ([channels] of images).
      vocabulary_size: How many words questions are made of, for networks that read them.
      **options: Keyword parameters of the network's function.

    Raises:
      ValueError: If the name is unknown, or the network does not fit the input.
    """
    if network is None:
        network = NETWORKS[name]
    columns, named = _inputs(network), hasattr(network, "inputs")
    if missing := [column for column in columns if column not in element_spec]:
        raise ValueError(
            f"Model {name!r} reads the columns {', '.join(columns)}; the examples have no "
            f"{', '.join(missing)}, but {', '.join(element_spec)}."
        )
    chosen = functools.partial(network, **options) if options else network
    if statistics is not None and "x" not in columns:
        raise ValueError(f"Model {name!r} does not read x, so there is nothing to standardize.")
    scaled = _scaled if statistics is None else functools.partial(_standardized, statistics)
    if QUESTION in columns:
        if vocabulary_size < 1:
            raise ValueError(f"Model {name!r} reads questions: give it their vocabulary_size.")
        chosen = functools.partial(chosen, vocabulary_size=vocabulary_size)

    def build(kind: Layers) -> keras.Model:
        symbols = {
            column: keras.Input(shape, dtype=np.dtype(dtype).name, name=column)
            for column in columns
            for dtype, shape in (element_spec[column],)
        }
        given = {**symbols, "x": scaled(symbols["x"])} if "x" in symbols else symbols
        hidden, logits = chosen(given if named else given["x"], num_classes, kind)
        outputs = {"logits": logits, "hidden": hidden}
        return keras.Model(list(symbols.values()), outputs, name=name)

    shapes = ", ".join(str(element_spec[column][1]) for column in columns)
    try:
        base = build(Layers())
    except ValueError as error:
        raise ValueError(
            f"Model {name!r} does not take examples of shape {shapes}: {error}"
        ) from error
    layers = tuple(layer.name for layer in base.layers if layer.weights)
    return Architecture(
        name=name,
        build=build,
        example_spec=collections.OrderedDict(
            (column, tf.TensorSpec([None, *shape], np.dtype(dtype).name))
            for column, (dtype, shape) in element_spec.items()
        ),
        layers=layers,
        head=layers[-1:],
        scaled=scaled,
    )


def _scaled(x: tf.Tensor) -> tf.Tensor:
    if x.dtype == tf.uint8:
        return keras.layers.Rescaling(1 / 255)(x)
    if x.dtype == tf.int16:
        # Only what the network card put together from several packets is longer than a full one.
        full = keras.layers.Rescaling(1 / _FULL_PACKET)(x)
        return tf.clip_by_value(full, -1.0, 1.0)
    return x


def _standardized(statistics: tuple[np.ndarray, np.ndarray], x: tf.Tensor) -> tf.Tensor:
    mean, deviation = (np.asarray(values, np.float32) for values in statistics)
    return keras.layers.Rescaling(1 / deviation, -mean / deviation)(x)
