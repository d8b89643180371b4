"""FedPer against its formulas, and against HDAFL, which computes the same."""

import numpy as np
import pytest
import tensorflow as tf
from transcription import COHORTS, SIZES, build, examples_of, federate, sgd, start_of


def written_out(process):
    """Algorithm 1: the base layers, and each client's personalization layers."""
    start, personal = start_of(process), {}
    base = start[:2]
    for cohort in COHORTS:
        sent = []
        for client in cohort:
            trained = sgd([*base, *personal.get(client, start[2:])], examples_of(client))
            sent.append(trained[:2])
            personal[client] = trained[2:]
        shares = np.array([SIZES[client] for client in cohort]) / sum(SIZES[c] for c in cohort)
        base = [np.average(of, axis=0, weights=shares) for of in zip(*sent, strict=True)]
    return base, personal


def test_equals_the_formulas():
    process = build("fed_per")
    state, states = federate(process)
    base, personal = written_out(process)
    for found, wanted in zip(state.weights.trainable, base, strict=True):
        np.testing.assert_allclose(found, wanted, atol=1e-5)
    assert set(states) == set(personal)
    for client, layers in personal.items():
        for found, wanted in zip(states[client].model.trainable, layers, strict=True):
            np.testing.assert_allclose(found, wanted, atol=1e-5)


@pytest.mark.parametrize("options", [{}, {"local_layers": ["dense_1"]}], ids=["default", "named"])
def test_equals_hdafl(options):
    """All bytes are the same, of the server and of clients."""
    found, wanted = (federate(build(method, **options)) for method in ("fed_per", "hdafl"))
    tf.nest.map_structure(np.testing.assert_array_equal, found, wanted)


def test_a_layer_that_does_not_exist():
    with pytest.raises(ValueError, match="No layer with variables is called 'head'; the model has"):
        build("fed_per", local_layers=["head"])
