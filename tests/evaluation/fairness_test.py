"""Fairness on made-up data with known answers, and against a loop over pairs."""

import numpy as np
import pytest

from tff_het import methods
from tff_het.backend.names import tff
from tff_het.clients import Client, Population
from tff_het.evaluation import fairness
from tff_het.learning.local_training import LocalTraining
from tff_het.models import adversary, architectures


def auc_by_pairs(truth, score) -> float:
    """The share of pairs (1, 0) that are in order, equal ones counting half."""
    above = score[truth == 1][:, None] - score[truth == 0][None, :]
    return float(np.mean((above > 0) + 0.5 * (above == 0)))


def test_auc_pooled_and_of_clients():
    rng = np.random.default_rng(0)
    truths = [rng.integers(0, 2, n) for n in (40, 25)]
    # The second client's scores are shifted: pooled, that disturbs; its own order is the same.
    scores = [t + rng.normal(size=len(t)) + 3.0 * k for k, t in enumerate(truths)]
    found = fairness.auc(truths, scores)
    own = [auc_by_pairs(t, s) for t, s in zip(truths, scores, strict=True)]
    assert found.mean == pytest.approx(np.mean(own))
    assert found.pooled == pytest.approx(
        auc_by_pairs(np.concatenate(truths), np.concatenate(scores))
    )
    assert found.pooled < found.mean - 0.05


def test_auc_leaves_out_clients_with_one_value_alone():
    truths = [np.array([0, 1]), np.array([1, 1]), np.zeros(0, int)]
    scores = [np.array([0.0, 1.0]), np.array([-1.0, 5.0]), np.zeros(0)]
    assert fairness.auc(truths, scores) == (pytest.approx(2 / 3), 1.0)
    assert fairness.auc(truths[1:], scores[1:]) == (None, None)
    # The second has as many in all, but not of each client.
    for wrong, lengths in ((scores[::2], r"\[2, 0\]"), (scores[::-1], r"\[0, 2, 2\]")):
        with pytest.raises(ValueError, match=rf"lengths \[2, 2, 0\] and {lengths}"):
            fairness.auc(truths, wrong)


def clients(num_clients: int, leak: float, *, n: int = 400, units: int = 8, at: int = 0):
    """Representations that hold an attribute, times `leak`, in one direction; the attributes."""
    rng = np.random.default_rng([at, int(10 * leak)])
    truths = [(rng.random(n) < 0.4).astype(int) for _ in range(num_clients)]
    direction = rng.normal(size=units) / np.sqrt(units)
    representations = [
        rng.normal(size=(n, units)) + leak * (2 * t[:, None] - 1) * direction for t in truths
    ]
    return representations, truths


CLASSIFIERS = [fairness.logistic, fairness.fresh_mlp]


@pytest.mark.parametrize("classifier", CLASSIFIERS)
def test_independent_representations_tell_nothing(classifier):
    """The 95 % interval over clients holds 0.5, and is narrow enough to say something."""
    found = [fairness.post_fit(*clients(1, 0.0, at=at), classifier, seed=at) for at in range(12)]
    half = 1.96 * np.std(found, ddof=1) / np.sqrt(len(found))
    assert abs(np.mean(found) - 0.5) < half < 0.04


@pytest.mark.parametrize("classifier", CLASSIFIERS)
def test_what_leaks_is_found(classifier):
    assert fairness.post_fit(*clients(2, 4.0), classifier, seed=0) > 0.97


@pytest.mark.parametrize("classifier", CLASSIFIERS)
@pytest.mark.parametrize("factor", [1e-6, 1e4])
def test_how_large_representations_are_does_not_matter(classifier, factor):
    representations, truths = clients(1, 1.0)
    scaled = [r * factor + 1.0 for r in representations]
    found = [fairness.post_fit(r, truths, classifier, seed=0) for r in (representations, scaled)]
    assert found[0] == pytest.approx(found[1], abs=0.02) and found[0] > 0.75


def test_what_only_the_mlp_finds():
    """An attribute that is the sign of a product."""
    rng = np.random.default_rng(0)
    representations = [rng.normal(size=(1500, 2)) for _ in range(2)]
    truths = [(r[:, 0] * r[:, 1] > 0).astype(int) for r in representations]
    assert fairness.post_fit(representations, truths, fairness.fresh_mlp, seed=0) > 0.9
    assert fairness.post_fit(representations, truths, fairness.logistic, seed=0) < 0.65


def test_constant_representations_tell_exactly_nothing():
    truths = [np.arange(40) % 2]
    assert fairness.post_fit([np.ones((40, 3))], truths, fairness.logistic, seed=0) == 0.5


def test_what_is_tested_on_was_not_fitted():
    """An attribute that a client's rows have by heart alone: noise with many features."""
    rng = np.random.default_rng(1)
    representations = [rng.normal(size=(60, 200)) for _ in range(20)]
    truths = [rng.integers(0, 2, 60) for _ in range(20)]
    found = fairness.post_fit(representations, truths, fairness.logistic, seed=0)
    assert abs(found - 0.5) < 0.1


def test_clients_without_both_values_in_both_halves_are_left_out():
    representations, truths = clients(4, 4.0, n=40)
    truths[0][:] = 1
    truths[1] = (np.arange(40) == 7).astype(int)  # A single one is in one half.
    truths[2] = np.isin(np.arange(40), (3, 9)).astype(int)  # Two: one for each half.
    made = []

    def counted(seed: int):
        made.append(seed)
        return fairness.logistic(seed)

    assert fairness.post_fit(representations, truths, counted, seed=0) is not None
    assert len(made) == 2
    assert fairness.post_fit(representations[:2], truths[:2], counted, seed=0) is None
    assert fairness.post_fit([], [], fairness.logistic, seed=0) is None


def test_the_seed_decides():
    data = clients(2, 0.5, n=100)
    one, again, other = (
        fairness.post_fit(*data, fairness.fresh_mlp, seed=seed) for seed in (0, 0, 1)
    )
    assert one == again != other


ELEMENT = {
    "x": (np.dtype(np.float32), (6,)),
    "y": (np.dtype(np.int32), ()),
    "sex": (np.dtype(np.int32), ()),
}


def network(x, num_classes, layers):
    hidden = layers.dense(5, "dense_1")(x)
    return hidden, layers.output(num_classes)(hidden)


def build(num_classes: int = 2, with_adversary: bool = True):
    architecture = architectures.make("small", ELEMENT, num_classes, network)
    if with_adversary:
        architecture = adversary.attach(architecture, ("sex",), (1.0,), units=(4,))
    training = LocalTraining(tff.learning.optimizers.build_sgdm(0.1), batch_size=4, epochs=1)
    return methods.build("lg_fedavg", architecture, training, seed=0, local_layers=["dense_1"])


@pytest.fixture(scope="module")
def population():
    rng = np.random.default_rng(0)

    def draw(n: int):
        return {
            "x": rng.normal(size=(n, 6)).astype(np.float32),
            "y": rng.integers(0, 2, n).astype(np.int32),
            "sex": rng.integers(0, 2, n).astype(np.int32),
        }

    return Population(
        [Client(name, draw(5), draw(n + 1), draw(n)) for name, n in (("a", 4), ("b", 7))]
    )


def test_each_client_is_scored_by_its_own_model(population):
    process = build()
    state = process.initialize()
    kept = [process.init_state(k, 0, state) for k in range(2)]
    doubled = [2 * value for value in kept[1].model.trainable]
    kept[1] = kept[1]._replace(model=kept[1].model._replace(trainable=doubled))
    found = fairness.score(process, state, population, kept.__getitem__, ("sex",))
    for client, own, one in zip(population, kept, found, strict=True):
        values = dict(
            zip(
                [s.path for s in process.model.specs],
                process.model.join(type(process.model.tensor_specs)(state.weights, own.model)),
                strict=True,
            )
        )

        def dense(x, name, values=values):
            return x @ values[f"{name}/kernel"] + values[f"{name}/bias"]

        hidden = np.maximum(dense(client.test["x"], "dense_1"), 0)
        logits = dense(hidden, "output")
        guess = dense(np.maximum(dense(hidden, "adversary_1"), 0), "adversary_output")
        np.testing.assert_allclose(one.representation, hidden, atol=1e-5)
        np.testing.assert_allclose(one.scores, logits[:, 1] - logits[:, 0], atol=1e-5)
        np.testing.assert_allclose(one.adversary["sex"], guess[:, 0], atol=1e-5)
        np.testing.assert_array_equal(one.protected["sex"], client.test["sex"])
        right = logits.argmax(axis=1) == client.test["y"]
        np.testing.assert_array_equal(one.correct, right)
    sizes = [
        len(one.labels)
        for one in fairness.score(
            process, state, population, kept.__getitem__, ("sex",), "validation"
        )
    ]
    assert sizes == [5, 8]
    nothing = {name: column[:0] for name, column in population[0].test.items()}
    untested = Population([Client("c", population[0].train, nothing, nothing)])
    (one,) = fairness.score(process, state, untested, kept.__getitem__, ("sex",))
    assert one.representation.shape == (0, 5)


@pytest.mark.parametrize(
    ("process", "attributes", "split", "message"),
    [
        (build, ("sex",), "tests", "split must be one of train, validation, test; found 'tests'"),
        (lambda: build(with_adversary=False), ("sex",), "test", "no output representation and no"),
        (build, ("sex", "race"), "test", "two classes and an adversary for sex, race"),
        (lambda: build(num_classes=3), ("sex",), "test", "'logits': 3"),
    ],
    ids=["split", "no adversary", "attributes", "classes"],
)
def test_refusals(population, process, attributes, split, message):
    made = process()
    with pytest.raises(ValueError, match=message):
        fairness.score(made, made.initialize(), population, lambda k: None, attributes, split)
