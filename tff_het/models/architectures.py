"""The papers' networks in Keras, by name, with the layers that methods ask for."""

import collections
import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import tensorflow as tf

from tff_het import kept
from tff_het.models import keras_model, objectives
from tff_het.models.layers import Dropout, Layers
from tff_het.models.model import Model, PerExample
from tff_het.models.vqa import IMAGE, QUESTION, VQANetwork

_FULL_PACKET = 1500  # Bytes, of Ethernet.

# Column -> (dtype, shape of one example).
ElementSpec = Mapping[str, tuple[np.dtype, tuple[int, ...]]]


@dataclasses.dataclass(frozen=True)
class Architecture:
    """A network before it is decided what of it is local.

    Attributes:
      name: Its name in `ARCHITECTURES`.
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
    build: Callable[[Layers], tf.keras.Model]
    example_spec: Mapping[str, tf.TensorSpec]
    layers: tuple[str, ...]
    head: tuple[str, ...]
    loss: PerExample = objectives.cross_entropy
    metrics: Mapping[str, PerExample] | None = None
    kind: Layers = dataclasses.field(default_factory=Layers)
    scaled: Callable[[tf.Tensor], tf.Tensor] = lambda x: x
    auxiliary: tuple[str, ...] = ()
    training_outputs: tuple[str, ...] = ()
    initialization: str = "glorot"
    opponent: tuple[str, ...] = ()
    opponent_loss: PerExample | None = None
    local_statistics: bool = False

    @property
    def all_metrics(self) -> Mapping[str, PerExample]:
        """What is reported, by name."""
        return {"accuracy": objectives.accuracy} if self.metrics is None else self.metrics

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


# Takes the input's symbol, the number of classes and the layers, gives (hidden, logits). With an
# attribute `inputs`, names of the columns that it reads, it takes their symbols by name; one that
# reads questions takes `vocabulary_size` too.
Network = Callable[..., tuple[tf.Tensor, tf.Tensor]]


def mlp(units: Sequence[int], dropout: float = 0.0) -> Network:
    """Fully connected hidden layers of these widths, each behind dropout, and a linear output."""

    def network(x: tf.Tensor, num_classes: int, layers: Layers):
        x = tf.keras.layers.Flatten()(x)
        for index, width in enumerate(units):
            x = Dropout(dropout)(x) if dropout else x
            x = layers.dense(width, f"dense_{index + 1}")(x)
        return x, layers.output(num_classes)(x)

    return network


def mlp_fair(x: tf.Tensor, num_classes: int, layers: Layers):
    """[32, 32, 32] and [32, 32]: local and global layers for Adult (Liang et al. 2019, Table 8).

    7,298 parameters on 93 inputs with 2 classes. As in the authors' code, the representation (the
    layer of that name) has no activation, and dropout follows the other hidden layers. There the
    output is one logit; the difference of our two says the same.
    """
    x = tf.keras.layers.Flatten()(x)
    for name in ("dense_1", "dense_2"):
        x = Dropout(0.2)(layers.dense(32, name)(x))
    x = layers.linear(32, "representation")(x)
    for name in ("dense_3", "dense_4"):
        x = Dropout(0.2)(layers.dense(32, name)(x))
    return x, layers.output(num_classes)(x)


def digits_cnn(x: tf.Tensor, num_classes: int, layers: Layers):
    """Two small convolutions for 8 x 8 images, and one hidden layer of 32 units."""
    x = layers.conv(8, 3, "conv_1")(x)
    x = layers.conv(16, 3, "conv_2")(x)
    x = tf.keras.layers.MaxPool2D()(x)
    x = layers.dense(32, "dense_1")(tf.keras.layers.Flatten()(x))
    return x, layers.output(num_classes)(x)


def small_cnn(x: tf.Tensor, num_classes: int, layers: Layers):
    """5 x 5 x 16, pool, 5 x 5 x 32, pool, 64 units: a light network for 28 x 28 or 32 x 32."""
    x = tf.keras.layers.MaxPool2D()(layers.conv(16, 5, "conv_1", padding="valid")(x))
    x = tf.keras.layers.MaxPool2D()(layers.conv(32, 5, "conv_2", padding="valid")(x))
    x = layers.dense(64, "dense_1")(tf.keras.layers.Flatten()(x))
    return x, layers.output(num_classes)(x)


def lenet5(x: tf.Tensor, num_classes: int, layers: Layers):
    """LeNet-5 as used for CIFAR-10 (Liang et al. 2019): 5x5x6, 5x5x16, 120, 100 units.

    64,102 parameters on 32 x 32 x 3 with 10 classes (second dense layer 100 units).
    """
    x = tf.keras.layers.MaxPool2D()(layers.conv(6, 5, "conv_1", padding="valid")(x))
    x = tf.keras.layers.MaxPool2D()(layers.conv(16, 5, "conv_2", padding="valid")(x))
    x = layers.dense(120, "dense_1")(tf.keras.layers.Flatten()(x))
    x = layers.dense(100, "dense_2")(x)
    return x, layers.output(num_classes)(x)


def convolutions_and_dense(
    filters: Sequence[int], size: int, units: Sequence[int], padding: str
) -> Network:
    """Convolutions, each before a pool, then hidden layers (WAFFLe, Appendix C)."""

    def network(x: tf.Tensor, num_classes: int, layers: Layers):
        for index, channels in enumerate(filters):
            x = layers.conv(channels, size, f"conv_{index + 1}", padding)(x)
            x = tf.keras.layers.MaxPool2D()(x)
        return mlp(units)(x, num_classes, layers)

    return network


def edge_cnn(
    filters: Sequence[int],
    units: int,
    normalised: bool = False,
    *,
    blocks: Sequence[Sequence[int]] = ((4, 5), (4, 4)),
) -> Network:
    """4x4, 5x5, pool, 4x4, 4x4, pool, hidden units, with dropout (Qian et al. 2019, Table I).

    The table does not print the padding: there is none here, so that 28 x 28 becomes 2 x 2.

    Args:
      filters: Of the convolutions.
      units: Of the hidden layer.
      normalised: Whether batch normalisation, with Keras's momentum of 0.99, stands between each
        hidden layer and its ReLU; §III-D says what that does.
      blocks: Sizes of the convolutions before each pool.
    """

    def network(x: tf.Tensor, num_classes: int, layers: Layers):
        def conv(x: tf.Tensor, index: int, size: int):
            name, width = f"conv_{index}", filters[index - 1]
            if not normalised:
                return layers.conv(width, size, name, "valid")(x)
            return _normalised(layers.linear_conv(width, size, name, "valid")(x), name)

        index = 0
        for sizes in blocks:
            for size in sizes:
                index += 1
                x = conv(x, index, size)
            x = Dropout(0.25)(tf.keras.layers.MaxPool2D()(x))
        x = tf.keras.layers.Flatten()(x)
        if normalised:
            x = _normalised(layers.linear(units, "dense_1")(x), "dense_1")
        else:
            x = layers.dense(units, "dense_1")(x)
        x = Dropout(0.5)(x)
        return x, layers.output(num_classes)(x)

    return network


def _normalised(x: tf.Tensor, layer: str) -> tf.Tensor:
    return tf.keras.layers.ReLU()(tf.keras.layers.BatchNormalization(name=f"norm_of_{layer}")(x))


def femnist_cnn(x: tf.Tensor, num_classes: int, layers: Layers):
    """LEAF's network (Caldas et al. 2018): 5x5x32, pool, 5x5x64, pool, 2048 units.

    6.6 million parameters on 28 x 28 x 1 with 62 classes.
    """
    x = tf.keras.layers.MaxPool2D()(layers.conv(32, 5, "conv_1")(x))
    x = tf.keras.layers.MaxPool2D()(layers.conv(64, 5, "conv_2")(x))
    x = layers.dense(2048, "dense_1")(tf.keras.layers.Flatten()(x))
    return x, layers.output(num_classes)(x)


def hdafl_small(x: tf.Tensor, num_classes: int, layers: Layers):
    """4x4x14, pool, 4x4x23, pool, 7 units: as small as the network of HDAFL's Table 4.

    Yang et al. (2020) print no sizes, but Table 4's megabytes over rounds and clients come to
    66.3 KB for FedAvg and 62.5 KB for HDAFL. Both ways, in float32, of 1,024 bytes that is this
    network on 28 x 28 x 1 with 62 classes: 8,492 parameters (66.34 KB), of which the first three
    layers have 7,996 (62.47 KB) and the classifier 496 (5.84 %).
    """
    # A classifier on u units has 62 (u + 1) parameters, so 3.8 KB leave room for 7 units alone. Of
    # 1,000 bytes the difference would be 462 to 488 parameters, which no dense layer has.
    x = tf.keras.layers.MaxPool2D()(layers.conv(14, 4, "conv_1", padding="valid")(x))
    x = tf.keras.layers.MaxPool2D()(layers.conv(23, 4, "conv_2", padding="valid")(x))
    x = layers.dense(7, "dense_1")(tf.keras.layers.Flatten()(x))
    return x, layers.output(num_classes)(x)


def traffic_cnn(x: tf.Tensor, num_classes: int, layers: Layers):
    """Over the packets of a flow: 3x32, 3x64, pool, 96 units.

    The 1D-CNN of HDAFL's traffic classification (Yang et al. 2020) is not printed. Table 5's gains
    (28.9 and 32.9 times) say that the classifier is 12 % of it, which holds here: 28,259 parameters
    on 10 packets with 35 classes, of which the classifier has 3,395 (12.0 %).
    """
    x = tf.keras.layers.Reshape((-1, 1))(x)
    for index, filters in enumerate((32, 64), start=1):
        x = layers.conv1d(filters, 3, f"conv_{index}")(x)
    x = tf.keras.layers.Flatten()(tf.keras.layers.MaxPool1D()(x))
    x = layers.dense(96, "dense_1")(x)
    return x, layers.output(num_classes)(x)


NETWORKS: dict[str, Network] = {
    "mlp": mlp([200]),
    "mlp_two_layers": mlp([64, 64], dropout=0.5),
    "mlp_two_layers_128": mlp([128, 128], dropout=0.5),
    "mlp_lg": mlp([512, 256, 256, 128]),
    "mlp_fair": mlp_fair,
    "digits_cnn": digits_cnn,
    "small_cnn": small_cnn,
    "lenet5": lenet5,
    # Without biases 28,880 parameters on 28 x 28 x 1, as the paper says.
    "cnn_16_32": convolutions_and_dense([16, 32], 5, [], "same"),
    # The paper's count for CIFAR-10, 61,770, fits no padding.
    "cnn_16_16": convolutions_and_dense([16, 16], 3, [80, 60], "valid"),
    "cnn_edge": edge_cnn([64, 16, 32, 16], 128),
    "cnn_edge_bn": edge_cnn([64, 16, 32, 16], 128, normalised=True),
    # A quarter to a half as wide, for small machines.
    "cnn_edge_small": edge_cnn([16, 8, 8, 8], 64),
    "cnn_edge_small_bn": edge_cnn([16, 8, 8, 8], 64, normalised=True),
    # For digits of 8 x 8.
    "cnn_edge_digits": edge_cnn([8, 16], 32, blocks=[(3, 3)]),
    "cnn_edge_digits_bn": edge_cnn([8, 16], 32, normalised=True, blocks=[(3, 3)]),
    "femnist_cnn": femnist_cnn,
    "hdafl_small": hdafl_small,
    "traffic_cnn": traffic_cnn,
    # For easy-VQA, and small enough for a processor.
    "vqa_lstm": VQANetwork(32, 64, 64, 64),
    "vqa_question_lstm": VQANetwork(32, 64, 64, 64, inputs=(QUESTION,)),
    "vqa_image": VQANetwork(32, 64, 64, 64, inputs=(IMAGE,)),
    # As wide as in Antol et al. (2015).
    "vqa_lstm_wide": VQANetwork(300, 512, 1024, 1000),
}


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

    Raises:
      ValueError: If the name is unknown, or the network does not fit the input.
    """
    if network is None:
        if name not in NETWORKS:
            raise ValueError(f"There is no model {name!r}; there are: {', '.join(NETWORKS)}.")
        network = NETWORKS[name]
    columns, named = _inputs(network), hasattr(network, "inputs")
    if missing := [column for column in columns if column not in element_spec]:
        raise ValueError(
            f"Model {name!r} reads the columns {', '.join(columns)}; the examples have no "
            f"{', '.join(missing)}, but {', '.join(element_spec)}."
        )
    chosen = network
    if statistics is not None and "x" not in columns:
        raise ValueError(f"Model {name!r} does not read x, so there is nothing to standardize.")
    scaled = _scaled if statistics is None else functools.partial(_standardized, statistics)
    if QUESTION in columns:
        if vocabulary_size < 1:
            raise ValueError(f"Model {name!r} reads questions: give it their vocabulary_size.")
        chosen = functools.partial(network, vocabulary_size=vocabulary_size)

    def build(kind: Layers) -> tf.keras.Model:
        symbols = {
            column: tf.keras.Input(shape, dtype=np.dtype(dtype).name, name=column)
            for column in columns
            for dtype, shape in (element_spec[column],)
        }
        given = {**symbols, "x": scaled(symbols["x"])} if "x" in symbols else symbols
        hidden, logits = chosen(given if named else given["x"], num_classes, kind)
        outputs = {"logits": logits, "hidden": hidden}
        return tf.keras.Model(list(symbols.values()), outputs, name=name)

    shapes = ", ".join(str(element_spec[column][1]) for column in columns)
    try:
        keras = build(Layers())
    except ValueError as error:
        raise ValueError(
            f"Model {name!r} does not take examples of shape {shapes}: {error}"
        ) from error
    layers = tuple(layer.name for layer in keras.layers if layer.weights)
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
        return tf.keras.layers.Rescaling(1 / 255)(x)
    if x.dtype == tf.int16:
        # Only what the network card put together from several packets is longer than a full one.
        full = tf.keras.layers.Rescaling(1 / _FULL_PACKET)(x)
        return tf.clip_by_value(full, -1.0, 1.0)
    return x


def _standardized(statistics: tuple[np.ndarray, np.ndarray], x: tf.Tensor) -> tf.Tensor:
    mean, deviation = (np.asarray(values, np.float32) for values in statistics)
    return tf.keras.layers.Rescaling(1 / deviation, -mean / deviation)(x)
