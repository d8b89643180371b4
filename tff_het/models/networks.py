"""The papers' networks: functions of the input, the number of classes and the layers to use."""

from collections.abc import Callable, Sequence

import tensorflow as tf

from tff_het.backend.names import keras
from tff_het.models.layers import Dropout, Layers
from tff_het.models.vqa import IMAGE, QUESTION, VQANetwork

# Takes the input's symbol, the number of classes and the layers, gives (hidden, logits). With an
# attribute `inputs`, names of the columns that it reads, it takes their symbols by name; one that
# reads questions takes `vocabulary_size` too.
Network = Callable[..., tuple[tf.Tensor, tf.Tensor]]


def mlp(units: Sequence[int], dropout: float = 0.0) -> Network:
    """Fully connected hidden layers of these widths, each behind dropout, and a linear output."""

    def network(x: tf.Tensor, num_classes: int, layers: Layers):
        x = keras.layers.Flatten()(x)
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
    x = keras.layers.Flatten()(x)
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
    x = keras.layers.MaxPool2D()(x)
    x = layers.dense(32, "dense_1")(keras.layers.Flatten()(x))
    return x, layers.output(num_classes)(x)


def small_cnn(x: tf.Tensor, num_classes: int, layers: Layers):
    """5 x 5 x 16, pool, 5 x 5 x 32, pool, 64 units: a light network for 28 x 28 or 32 x 32."""
    x = keras.layers.MaxPool2D()(layers.conv(16, 5, "conv_1", padding="valid")(x))
    x = keras.layers.MaxPool2D()(layers.conv(32, 5, "conv_2", padding="valid")(x))
    x = layers.dense(64, "dense_1")(keras.layers.Flatten()(x))
    return x, layers.output(num_classes)(x)


def lenet5(x: tf.Tensor, num_classes: int, layers: Layers):
    """LeNet-5 as used for CIFAR-10 (Liang et al. 2019): 5x5x6, 5x5x16, 120, 100 units.

    64,102 parameters on 32 x 32 x 3 with 10 classes (second dense layer 100 units).
    """
    x = keras.layers.MaxPool2D()(layers.conv(6, 5, "conv_1", padding="valid")(x))
    x = keras.layers.MaxPool2D()(layers.conv(16, 5, "conv_2", padding="valid")(x))
    x = layers.dense(120, "dense_1")(keras.layers.Flatten()(x))
    x = layers.dense(100, "dense_2")(x)
    return x, layers.output(num_classes)(x)


def convolutions_and_dense(
    filters: Sequence[int], size: int, units: Sequence[int], padding: str
) -> Network:
    """Convolutions, each before a pool, then hidden layers (WAFFLe, Appendix C)."""

    def network(x: tf.Tensor, num_classes: int, layers: Layers):
        for index, channels in enumerate(filters):
            x = layers.conv(channels, size, f"conv_{index + 1}", padding)(x)
            x = keras.layers.MaxPool2D()(x)
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
            x = Dropout(0.25)(keras.layers.MaxPool2D()(x))
        x = keras.layers.Flatten()(x)
        if normalised:
            x = _normalised(layers.linear(units, "dense_1")(x), "dense_1")
        else:
            x = layers.dense(units, "dense_1")(x)
        x = Dropout(0.5)(x)
        return x, layers.output(num_classes)(x)

    return network


def _normalised(x: tf.Tensor, layer: str) -> tf.Tensor:
    return keras.layers.ReLU()(keras.layers.BatchNormalization(name=f"norm_of_{layer}")(x))


def cnn_pfllib(x: tf.Tensor, num_classes: int, layers: Layers):
    """5x5x32, pool, 5x5x64, pool, 512 units (PFLlib, Zhang et al. 2023).

    Scales pixels from [0, 1] to [-1, 1], so inputs should not be standardised. 582,026 parameters
    on 28 x 28 x 1 with 10 classes.
    """
    x = keras.layers.Rescaling(2.0, offset=-1.0)(x)
    return convolutions_and_dense([32, 64], 5, [512], "valid")(x, num_classes, layers)


def femnist_cnn(x: tf.Tensor, num_classes: int, layers: Layers):
    """LEAF's network (Caldas et al. 2018): 5x5x32, pool, 5x5x64, pool, 2048 units.

    6.6 million parameters on 28 x 28 x 1 with 62 classes.
    """
    x = keras.layers.MaxPool2D()(layers.conv(32, 5, "conv_1")(x))
    x = keras.layers.MaxPool2D()(layers.conv(64, 5, "conv_2")(x))
    x = layers.dense(2048, "dense_1")(keras.layers.Flatten()(x))
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
    x = keras.layers.MaxPool2D()(layers.conv(14, 4, "conv_1", padding="valid")(x))
    x = keras.layers.MaxPool2D()(layers.conv(23, 4, "conv_2", padding="valid")(x))
    x = layers.dense(7, "dense_1")(keras.layers.Flatten()(x))
    return x, layers.output(num_classes)(x)


def traffic_cnn(x: tf.Tensor, num_classes: int, layers: Layers):
    """Over the packets of a flow: 3x32, 3x64, pool, 96 units.

    The 1D-CNN of HDAFL's traffic classification (Yang et al. 2020) is not printed. Table 5's gains
    (28.9 and 32.9 times) say that the classifier is 12 % of it, which holds here: 28,259 parameters
    on 10 packets with 35 classes, of which the classifier has 3,395 (12.0 %).
    """
    x = keras.layers.Reshape((-1, 1))(x)
    for index, filters in enumerate((32, 64), start=1):
        x = layers.conv1d(filters, 3, f"conv_{index}")(x)
    x = keras.layers.Flatten()(keras.layers.MaxPool1D()(x))
    x = layers.dense(96, "dense_1")(x)
    return x, layers.output(num_classes)(x)


mlp_200 = mlp([200])
"""One hidden layer of 200 units."""
mlp_64_64 = mlp([64, 64], dropout=0.5)
"""Two hidden layers of 64 units, each behind dropout of one half."""
mlp_128_128 = mlp([128, 128], dropout=0.5)
"""Two hidden layers of 128 units, each behind dropout of one half."""
mlp_lg = mlp([512, 256, 256, 128])
"""Four hidden layers of 512 to 128 units, for MNIST (Liang et al. 2019)."""
cnn_16_32 = convolutions_and_dense([16, 32], 5, [], "same")
"""5x5x16, pool, 5x5x32, pool; without biases 28,880 parameters on 28 x 28 x 1 (WAFFLe 2020)."""
# The paper's count for CIFAR-10, 61,770, fits no padding.
cnn_16_16 = convolutions_and_dense([16, 16], 3, [80, 60], "valid")
"""3x3x16, pool, 3x3x16, pool, 80 and 60 units, for CIFAR-10 (WAFFLe 2020)."""
lenet5_84 = convolutions_and_dense([6, 16], 5, [120, 84], "valid")
"""5x5x6, pool, 5x5x16, pool, 120 and 84 units: LeNet-5 as in NIID-Bench (Li et al. 2022)."""
logistic = mlp([])
"""Multinomial logistic regression."""
cnn_edge = edge_cnn([64, 16, 32, 16], 128)
"""Four convolutions and 128 units, with dropout (Qian et al. 2019, Table I)."""
cnn_edge_bn = edge_cnn([64, 16, 32, 16], 128, normalised=True)
"""`cnn_edge` with batch normalisation behind each hidden layer."""
cnn_edge_small = edge_cnn([16, 8, 8, 8], 64)
"""`cnn_edge` a quarter to a half as wide, for small machines."""
cnn_edge_small_bn = edge_cnn([16, 8, 8, 8], 64, normalised=True)
"""`cnn_edge_small` with batch normalisation."""
cnn_edge_digits = edge_cnn([8, 16], 32, blocks=[(3, 3)])
"""`cnn_edge` with two convolutions, for digits of 8 x 8."""
cnn_edge_digits_bn = edge_cnn([8, 16], 32, normalised=True, blocks=[(3, 3)])
"""`cnn_edge_digits` with batch normalisation."""
vqa_lstm = VQANetwork(32, 64, 64, 64)
"""An LSTM over the question times a layer over the image, small enough for a CPU."""
vqa_question_lstm = VQANetwork(32, 64, 64, 64, inputs=(QUESTION,))
"""The question's half of `vqa_lstm` alone."""
vqa_image = VQANetwork(32, 64, 64, 64, inputs=(IMAGE,))
"""The image's half of `vqa_lstm` alone."""
vqa_lstm_wide = VQANetwork(300, 512, 1024, 1000)
"""`vqa_lstm` as wide as in Antol et al. (2015)."""
