"""The papers' networks have the papers' sizes, and the parts that methods ask for."""

import numpy as np
import pytest

from tff_het.models import architectures
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
    ],
)
def test_number_of_parameters(name, shape, classes, parameters):
    model = architectures.make(name, spec(*shape), classes).model()
    assert model.num_parameters == parameters


@pytest.mark.parametrize("name", architectures.NETWORKS)
def test_every_network_gives_logits_and_the_last_hidden_layer(name):
    architecture = architectures.make(name, spec(28, 28, 1), 7)
    model = architecture.model(local=architecture.head)
    x = np.random.default_rng(0).integers(0, 256, (3, 28, 28, 1), np.uint8)
    variables = model.initial_variables(0)
    context = ClientContext(0, 3, 0)
    outputs = model.predict(variables, {"x": x}, context, np.array([0, 0], np.int32), False)
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


def test_layers_from_input_to_output():
    architecture = architectures.make("lenet5", spec(32, 32, 3), 10)
    assert architecture.layers == ("conv_1", "conv_2", "dense_1", "dense_2", "output")


def test_unknown_network():
    with pytest.raises(ValueError, match="no model 'resnet'; there are: mlp, "):
        architectures.make("resnet", spec(28, 28, 1), 10)


def test_network_that_does_not_fit():
    with pytest.raises(ValueError, match=r"'lenet5' does not take examples of shape \(3,\)"):
        architectures.make("lenet5", spec(3), 10)
