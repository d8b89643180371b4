"""The papers' networks have the papers' sizes, and the parts that methods ask for."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from tff_het import datasets
from tff_het.backend.names import keras
from tff_het.models import NETWORKS, architectures
from tff_het.models.model import ClientContext

LABEL = (np.dtype(np.int32), ())


def spec(*shape: int, dtype=np.uint8):
    return {"x": (np.dtype(dtype), shape), "y": LABEL}


@pytest.mark.parametrize(
    ("name", "shape", "classes", "parameters"),
    [
        # 784 * 200 + 200 + 200 * 10 + 10: McMahan et al. with one of their two layers.
        ("mlp", (28, 28, 1), 10, 784 * 200 + 200 + 200 * 10 + 10),
        # Liang et al. (2019) report 633,226 for MNIST and 64,102 for CIFAR-10.
        ("mlp_lg", (28, 28, 1), 10, 633_226),
        ("lenet5", (32, 32, 3), 10, 64_102),
        # LEAF's network: two convolutions, pooled twice to 7 x 7, 2048 units.
        (
            "femnist_cnn",
            (28, 28, 1),
            62,
            (25 * 1 * 32 + 32) + (25 * 32 * 64 + 64) + (49 * 64 * 2048 + 2048) + (2048 * 62 + 62),
        ),
        # conv 32*(25+1), conv 64*(25*32+1), 4*4*64 -> 512, 512 -> 10.
        ("cnn_pfllib", (28, 28, 1), 10, 832 + 51_264 + 524_800 + 5130),
        # conv 6*(25+1), conv 16*(25*6+1), 4*4*16 -> 120, 120 -> 84, 84 -> 10.
        ("lenet5_84", (28, 28, 1), 10, 156 + 2416 + 30_840 + 10_164 + 850),
        ("logistic", (28, 28, 1), 10, 784 * 10 + 10),
    ],
)
def test_number_of_parameters(name, shape, classes, parameters):
    model = architectures.make(name, spec(*shape), classes).model()
    assert model.num_parameters == parameters


@pytest.mark.parametrize(
    ("name", "classes", "total", "head"),
    [
        # conv 14*(16+1), conv 23*(16*14+1), 4*4*23 -> 7, 7 -> 62.
        ("hdafl_small", 62, 238 + 5175 + 2583 + 496, 496),
        # conv 32*(3+1), conv 64*(3*32+1), 3*64 -> 96, 96 -> 35.
        ("traffic_cnn", 35, 128 + 6208 + 18_528 + 3395, 3395),
    ],
)
def test_private_share_of_the_networks_of_hdafl(name, classes, total, head):
    example = spec(10, dtype=np.int16) if name == "traffic_cnn" else spec(28, 28, 1)
    architecture = architectures.make(name, example, classes)
    assert architecture.layers == ("conv_1", "conv_2", "dense_1", "output")
    model = architecture.model(local=architecture.head)
    assert (model.num_parameters, model.num_global_parameters) == (total, total - head)
    if name == "hdafl_small":
        # Table 4 of Yang et al. (2020) a client and round: float32, both ways, KB of 1,024 bytes.
        kilobytes = [n * 4 * 2 / 1024 for n in (model.num_parameters, model.num_global_parameters)]
        assert [round(value, 1) for value in kilobytes] == [66.3, 62.5]
    else:
        # Table 5: FedAvg's gain over HDAFL's is the share that HDAFL sends.
        assert 28.85 / 32.95 < 1 - head / total < 28.95 / 32.85


@pytest.mark.parametrize("name", NETWORKS)
def test_every_network_gives_logits_and_the_last_hidden_layer(name, for_network):
    batch, architecture = for_network(name, 7)
    model = architecture.model(local=architecture.head)
    variables = model.initial_variables(0)
    context = ClientContext(0, 3, 0)
    outputs = model.predict(variables, batch, context, np.array([0, 0], np.int32), False)
    assert outputs["logits"].shape == (3, 7)
    # The head is the last layer: logits = hidden @ kernel + bias.
    kernel, bias = (v.numpy() for v in variables.local_weights.trainable)
    expected = outputs["hidden"].numpy() @ kernel + bias
    np.testing.assert_allclose(outputs["logits"], expected, atol=1e-5)
    assert architecture.head == ("output",)


def test_bytes_are_scaled_and_numbers_are_not():
    """255 as a byte is 1 as a number."""
    values = [
        architectures.make("mlp", spec(4, dtype=dtype), 3).model()
        for dtype in (np.uint8, np.float32)
    ]
    outputs = [
        model.predict(
            model.initial_variables(0),
            {"x": x},
            ClientContext(0, 2, 0),
            np.zeros(2, np.int32),
            False,
        )["logits"]
        for model, x in zip(
            values, (np.full((2, 4), 255, np.uint8), np.ones((2, 4), np.float32)), strict=True
        )
    ]
    np.testing.assert_allclose(outputs[0], outputs[1], rtol=1e-6)


def test_packet_lengths_are_in_full_packets_and_longer_ones_are_cut():
    """-750 bytes are -0.5; 1,500 and more are 1."""
    lengths = np.array([[-750, 1500, 0], [-32_768, 32_767, 15]], np.int16)
    scaled = np.array([[-0.5, 1, 0], [-1, 1, 0.01]], np.float32)
    logits = []
    for x in (lengths, scaled):
        model = architectures.make("mlp", spec(3, dtype=x.dtype), 3).model()
        variables, context = model.initial_variables(0), ClientContext(0, 2, 0)
        outputs = model.predict(variables, {"x": x}, context, np.zeros(2, np.int32), False)
        logits.append(outputs["logits"])
    np.testing.assert_allclose(logits[0], logits[1], rtol=1e-5)


@pytest.mark.parametrize(
    ("shape", "dtype"), [((6, 6, 2), np.uint8), ((4,), np.int16), ((4,), np.float32)]
)
def test_standardised_inputs_have_mean_0_and_variance_1(shape, dtype):
    """A network whose hidden layer is what its first layer gets."""

    def network(x, num_classes, layers):
        return x, layers.output(num_classes)(keras.layers.Flatten()(x))

    x = np.random.default_rng(0).integers(0, 200, (50, *shape)).astype(dtype)
    x[..., 0] = 7  # Never varies.
    data = {"x": x, "y": np.zeros(50, np.int32)}
    dataset = datasets.Dataset("toy", data, data, ("a", "b"), "made by hand")
    statistics = dataset.statistics()
    made = architectures.make("shown", spec(*shape, dtype=dtype), 2, network, statistics=statistics)
    model = made.model()
    variables, context = model.initial_variables(0), ClientContext(0, 50, 0)
    outputs = model.predict(variables, {"x": x}, context, np.zeros(2, np.int32), False)
    seen = outputs["hidden"].numpy().reshape(-1, shape[-1])
    np.testing.assert_allclose(seen.mean(axis=0), np.zeros(shape[-1]), atol=1e-5)
    np.testing.assert_allclose(seen[:, 1:].std(axis=0), np.ones(shape[-1] - 1), rtol=1e-5)
    np.testing.assert_allclose(seen[:, 0], np.zeros(len(seen)), atol=1e-5)
    columns = x.reshape(-1, shape[-1])[:, 1:].astype(np.float64)
    wanted = (columns - columns.mean(axis=0)) / columns.std(axis=0)
    np.testing.assert_allclose(seen[:, 1:], wanted, atol=1e-5)


def test_layers_from_input_to_output():
    architecture = architectures.make("lenet5", spec(32, 32, 3), 10)
    assert architecture.layers == ("conv_1", "conv_2", "dense_1", "dense_2", "output")


def test_unknown_network():
    with pytest.raises(ValueError, match="no model 'resnet'; there are: mlp, "):
        architectures.make("resnet", spec(28, 28, 1), 10)


def test_network_that_does_not_fit():
    with pytest.raises(ValueError, match=r"'lenet5' does not take examples of shape \(3,\)"):
        architectures.make("lenet5", spec(3), 10)


def edge_in_keras(filters, units: int, normalised: bool) -> keras.Model:
    """Table I of Qian et al. (2019), row by row, without its dropout; and with normalisation."""
    layers = keras.layers
    norm = [layers.BatchNormalization] if normalised else []
    rows = [layers.Rescaling(1 / 255)]
    for index, (width, size) in enumerate(zip(filters, (4, 5, 4, 4), strict=True), start=1):
        rows += [layers.Conv2D(width, size), *(make() for make in norm), layers.ReLU()]
        rows += [layers.MaxPool2D(2)] if index % 2 == 0 else []
    rows += [layers.Flatten(), layers.Dense(units), *(make() for make in norm), layers.ReLU()]
    return keras.Sequential([keras.Input((28, 28, 1)), *rows, layers.Dense(10)])


@pytest.mark.parametrize(
    ("name", "filters", "units"),
    [("cnn_edge", (64, 16, 32, 16), 128), ("cnn_edge_small", (16, 8, 8, 8), 64)],
)
@pytest.mark.parametrize("normalised", [False, True])
def test_network_of_edge_ensembles(name, filters, units, normalised):
    model = architectures.make(name + "_bn" * normalised, spec(28, 28, 1), 10).model()
    assert model.draws_in_training
    if name == "cnn_edge" and not normalised:
        convolutions = (16 * 64 + 64) + (25 * 64 * 16 + 16) + (16 * 16 * 32 + 32)
        rest = (16 * 32 * 16 + 16) + (2 * 2 * 16 * 128 + 128) + (128 * 10 + 10)
        assert model.num_parameters == convolutions + rest
    rng = np.random.default_rng(0)
    # Positive, since there are variances among them.
    values = [np.float32(rng.uniform(0.1, 1.0, variable.shape) / 10) for variable in model.specs]
    for value in values:
        value[..., ::2] *= 1.0 if value.ndim == 1 else -1.0
    plain = edge_in_keras(filters, units, normalised)
    plain.set_weights(_in_order_of(plain, model, values))
    x = rng.integers(0, 256, (5, 28, 28, 1)).astype(np.uint8)
    found = model.predict(
        model.split(values), {"x": x}, ClientContext(0, 5, 0), np.zeros(2, np.int32), False
    )
    wanted = plain(tf.cast(x, tf.float32)).numpy()
    assert np.ptp(wanted, axis=0).max() > 1e-3
    np.testing.assert_allclose(found["logits"], wanted, rtol=1e-3, atol=1e-5)


def _in_order_of(plain: keras.Model, model, values) -> list[np.ndarray]:
    """Keras lists weights layer by layer, as the model does."""
    assert [tuple(w.shape) for w in plain.get_weights()] == [s.shape for s in model.specs]
    return values


@pytest.mark.parametrize("local", [(), ("output",), lambda path: path.startswith("conv_1/")])
def test_moving_statistics_may_be_local(local):
    architecture = architectures.make("cnn_edge_small_bn", spec(28, 28, 1), 10)
    averaged = architecture.model(local)
    kept = dataclasses.replace(architecture, local_statistics=True).model(local)
    for one, other in zip(averaged.specs, kept.specs, strict=True):
        moves = one.path.split("/")[1] in ("moving_mean", "moving_variance")
        assert other.local == (one.local or moves)
        assert one.trainable == other.trainable != moves
    assert sum(s.local for s in kept.specs) - sum(s.local for s in averaged.specs) == 2 * 5


def test_statistics_to_keep_have_to_be_there():
    architecture = architectures.make("cnn_edge_small", spec(28, 28, 1), 10)
    with pytest.raises(ValueError, match=r"to be local, but the model has none: .* batch norm"):
        dataclasses.replace(architecture, local_statistics=True).model()
