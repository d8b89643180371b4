"""CGAU against the same algorithm in NumPy, and what its two variants do with the conditioning."""

import collections

import numpy as np
import pytest

from tff_het import methods, seeding
from tff_het.backend.names import tff
from tff_het.learning.local_training import LocalTraining
from tff_het.models import architectures, networks

SEED, RATE, STEPS = 1, 0.4, 3
FEATURES, UNITS, CLASSES = 3, 2, 2
SIZES = {0: 7, 1: 3, 2: 5}
ELEMENT = {"x": (np.dtype(np.float32), (FEATURES,)), "y": (np.dtype(np.int32), ())}


def build(method: str = "cgau", **options):
    training = LocalTraining(
        tff.learning.optimizers.build_sgdm(RATE), batch_size=16, epochs=STEPS, shuffle=False
    )
    architecture = architectures.make("small", ELEMENT, CLASSES, networks.mlp([UNITS]))
    return methods.build(method, architecture, training, seed=SEED, **options)


def examples(client: int):
    rng = np.random.default_rng(client)
    x = rng.normal(size=(SIZES[client], FEATURES)).astype(np.float32)
    return collections.OrderedDict(x=x, y=(x[:, 0] + client - 1 > 0).astype(np.int32))


def clients_of(process, state, kept=None):
    return [
        collections.OrderedDict(
            client=np.int32(client),
            seed=seeding.stateless_seed(SEED, seeding.CLIENT_WORK, 0, client),
            examples=examples(client),
            state=(kept or {}).get(client, process.init_state(client, SEED, state)),
        )
        for client in SIZES
    ]


def numpy_step(w, x, y):
    """One step of gradient descent on the mean cross entropy; w by name, changed in place."""
    n = len(x)
    t = np.tanh(x @ w["dense_1/filter/kernel"] + w["dense_1/filter/bias"] + w["vf"])
    s = 1 / (1 + np.exp(-(x @ w["dense_1/gate/kernel"] + w["dense_1/gate/bias"] + w["vg"])))
    z = t * s
    logits = z @ w["output/kernel"] + w["output/bias"]
    p = np.exp(logits - logits.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    d_logits = (p - np.eye(CLASSES)[y]) / n
    d_z = d_logits @ w["output/kernel"].T
    d_filter, d_gate = d_z * s * (1 - t**2), d_z * t * s * (1 - s)
    gradients = {
        "output/kernel": z.T @ d_logits,
        "output/bias": d_logits.sum(axis=0),
        "dense_1/filter/kernel": x.T @ d_filter,
        "dense_1/filter/bias": d_filter.sum(axis=0),
        "dense_1/gate/kernel": x.T @ d_gate,
        "dense_1/gate/bias": d_gate.sum(axis=0),
        "vf": d_filter.sum(axis=0),
        "vg": d_gate.sum(axis=0),
    }
    for name, gradient in gradients.items():
        w[name] = w[name] - RATE * gradient


def values_by_path(process, weights, local=False):
    specs = [spec for spec in process.model.specs if spec.local == local]
    return {
        spec.path: np.asarray(value, np.float64)
        for spec, value in zip(specs, weights.trainable, strict=True)
    }


def test_private_against_numpy():
    """Three rounds of three clients with three steps each."""
    process = build()
    state = process.initialize()
    server = values_by_path(process, state.weights)
    vectors = {client: {"vf": np.zeros(UNITS), "vg": np.zeros(UNITS)} for client in SIZES}
    kept: dict = {}
    for _ in range(3):
        total = {name: np.zeros_like(value) for name, value in server.items()}
        for client, n in SIZES.items():
            w = server | vectors[client]
            data = examples(client)
            for _ in range(STEPS):
                numpy_step(w, data["x"].astype(np.float64), data["y"])
            vectors[client] = {name: w[name] for name in ("vf", "vg")}
            for name in total:
                total[name] += n / sum(SIZES.values()) * w[name]
        server = total
        output = process.next(state, clients_of(process, state, kept))
        state = output.state
        kept = {int(one["client"]): one["state"] for one in output.client_states}
    for path, value in values_by_path(process, state.weights).items():
        np.testing.assert_allclose(value, server[path], atol=2e-6, err_msg=path)
    for client, own in vectors.items():
        found = values_by_path(process, kept[client].model, local=True)
        assert np.abs(own["vf"]).max() > 0.01
        np.testing.assert_allclose(found["dense_1/filter_conditioning"], own["vf"], atol=2e-6)
        np.testing.assert_allclose(found["dense_1/gate_conditioning"], own["vg"], atol=2e-6)


def test_a_shared_row_moves_by_its_clients_share():
    """By n_k / n of client k's local change, and all rows travel to everyone."""
    process = build(variant="shared_one_hot", num_clients=len(SIZES))
    state = process.initialize()
    clients = clients_of(process, state)
    sent = process.client_update(process.download(state), clients)
    after = values_by_path(process, process.next(state, clients).state.weights)
    before = values_by_path(process, state.weights)
    total = sum(SIZES.values())
    for part in ("filter", "gate"):
        path = f"dense_1/{part}_conditioning"
        for one in sent:
            client = int(one["client"])
            change = values_by_path(process, one["update"])[path]
            others = [other for other in SIZES if other != client]
            assert np.all(change[others] == 0) and np.all(change[client] != 0)
            share = np.float32(SIZES[client]) * change[client].astype(np.float32)
            np.testing.assert_allclose(
                after[path][client] - before[path][client], share / np.float32(total), rtol=3e-7
            )


def test_options_are_checked():
    with pytest.raises(ValueError, match="should be one of <private"):
        build(variant="public")
    with pytest.raises(ValueError, match="shared_one_hot needs num_clients"):
        build(variant="shared_one_hot")
