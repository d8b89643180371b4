"""Tests of `local_test` and `global_test` against the forward pass written in NumPy."""

import numpy as np
import pytest
import tensorflow as tf
from sklearn.metrics import log_loss

from tff_het import methods
from tff_het.backend.names import tff
from tff_het.clients import Client, Population
from tff_het.evaluation.local_test import global_test, has_global_model, local_tests
from tff_het.learning.client_work import ClientState
from tff_het.learning.local_training import LocalTraining
from tff_het.learning.process import FederatedProcess, ServerState
from tff_het.models import architectures, networks
from tff_het.models.model import Variables

NUM_FEATURES, NUM_CLASSES = 4, 3


def make_process(method: str, num_classes: int = NUM_CLASSES, **options) -> FederatedProcess:
    architecture = architectures.make(
        "tiny",
        {"x": (np.dtype(np.float32), (NUM_FEATURES,)), "y": (np.dtype(np.int64), ())},
        num_classes,
        network=networks.mlp([5]),
    )
    training = LocalTraining(tff.learning.optimizers.build_sgdm(0.1), batch_size=5, epochs=1)
    return methods.build(method, architecture, training, seed=1, **options)


@pytest.fixture(scope="module")
def fed_avg() -> FederatedProcess:
    return make_process("fed_avg")


@pytest.fixture(scope="module")
def hdafl() -> FederatedProcess:
    return make_process("hdafl")


def variables_of(process: FederatedProcess, seed: int) -> Variables:
    """Initial variables with biases that are not zero, so that these matter."""
    rng = np.random.default_rng(seed)
    return tf.nest.map_structure(
        lambda v: v.numpy() + rng.normal(0, 0.3, v.shape).astype(np.float32),
        process.model.initial_variables(seed),
    )


def server_state_of(variables: Variables) -> ServerState:
    return ServerState(np.int32(0), *variables, aggregator=(), server_step=())


def columns(rng: np.random.Generator, num: int) -> dict[str, np.ndarray]:
    return {
        "x": rng.normal(size=(num, NUM_FEATURES)).astype(np.float32),
        "y": rng.integers(NUM_CLASSES, size=num),
    }


def population_of(test_sizes: list[int]) -> Population:
    rng = np.random.default_rng(5)
    return Population(
        Client(f"c{k}", columns(rng, 2), columns(rng, 3), columns(rng, size))
        for k, size in enumerate(test_sizes)
    )


def local_test(*arguments, split: str = "test"):
    return local_tests(*arguments, [split])[split]


def expected(weights: list[np.ndarray], examples: dict[str, np.ndarray]) -> tuple[float, float]:
    """Accuracy and cross entropy of a network of two layers, in float64."""
    w1, b1, w2, b2 = (w.astype(np.float64) for w in weights)
    logits = np.maximum(examples["x"] @ w1 + b1, 0) @ w2 + b2
    log_p = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    y = examples["y"]
    return np.mean(logits.argmax(axis=1) == y), -np.mean(log_p[np.arange(len(y)), y])


def test_each_client_has_its_own_model(hdafl):
    population = population_of([6, 40, 1])
    shared = variables_of(hdafl, 0)
    own = [variables_of(hdafl, 10 + k).local_weights for k in range(3)]

    result = local_test(
        hdafl,
        server_state_of(shared),
        population,
        lambda k: ClientState(own[k], (), np.int32(7 * k)),
    )

    assert result.client_ids == ("c0", "c1", "c2")
    np.testing.assert_array_equal(result.num_examples, [6, 40, 1])
    np.testing.assert_array_equal(result.rounds, [0, 7, 14])
    for k, client in enumerate(population):
        weights = [*shared.global_weights.trainable, *own[k].trainable]
        accuracy, loss = expected(weights, client.test)
        assert result.accuracy[k] == pytest.approx(accuracy)
        assert result.loss[k] == pytest.approx(loss, rel=1e-5)
    assert result.accuracy.dtype == result.loss.dtype == np.float64
    assert result.num_examples.dtype == result.rounds.dtype == np.int64


def test_clients_that_never_trained_have_their_initial_state(hdafl):
    population = population_of([20, 20])
    variables = variables_of(hdafl, 0)
    state = server_state_of(variables)
    result = local_test(hdafl, state, population, lambda k: hdafl.init_state(k, 3, state))
    weights = [*variables.global_weights.trainable, *variables.local_weights.trainable]
    np.testing.assert_array_equal(result.rounds, [0, 0])
    np.testing.assert_allclose(
        result.loss, [expected(weights, c.test)[1] for c in population], rtol=1e-5
    )


def test_the_split_is_respected_and_empty_ones_are_nan(fed_avg):
    population = population_of([0, 4])
    variables = variables_of(fed_avg, 0)
    state = server_state_of(variables)

    def client_state(k):
        return fed_avg.init_state(k, 0, state)

    test = local_test(fed_avg, state, population, client_state)
    np.testing.assert_array_equal(test.num_examples, [0, 4])
    np.testing.assert_array_equal(np.isnan(test.accuracy), [True, False])
    np.testing.assert_array_equal(np.isnan(test.loss), [True, False])
    for split in ("train", "validation"):
        result = local_test(fed_avg, state, population, client_state, split=split)
        weights = variables.global_weights.trainable
        np.testing.assert_allclose(
            result.loss, [expected(weights, getattr(c, split))[1] for c in population], rtol=1e-5
        )
    with pytest.raises(ValueError, match="split must be one of train, validation, test"):
        local_test(fed_avg, state, population, client_state, split="tests")


def test_weights_are_converted_once_and_few_graphs_are_traced():
    process = make_process("fed_avg")
    population = population_of([3, 7, 1, 0, 12, 5, 30, 2, 2, 9])
    state = server_state_of(variables_of(process, 0))
    seen = []
    predict = process.predict

    def recorded(weights, *args, **kwargs):
        seen.append(weights.trainable[0])
        return predict(weights, *args, **kwargs)

    process.predict = recorded
    local_test(process, state, population, lambda k: process.init_state(k, 0, state))
    assert len(seen) == 9
    assert isinstance(seen[0], tf.Tensor)
    assert all(weights is seen[0] for weights in seen)
    assert len(process._predict_batches) == 1  # Traced once for clients of all sizes.


def test_global_test_equals_numpy_and_scikit_learn(fed_avg):
    examples = columns(np.random.default_rng(1), 50)
    examples["y"][:] = np.minimum(examples["y"], 1)  # The last class is never seen.
    variables = variables_of(fed_avg, 2)
    state = server_state_of(variables)
    result = global_test(fed_avg, state, examples)
    accuracy, loss = expected(variables.global_weights.trainable, examples)
    assert result.accuracy == pytest.approx(accuracy)
    assert result.loss == pytest.approx(loss, rel=1e-5)

    logits = fed_avg.predict(state.weights, fed_avg.init_state(0, 0, state), examples)["logits"]
    p = np.exp(logits.astype(np.float64))
    p /= p.sum(axis=1, keepdims=True)
    assert result.loss == pytest.approx(log_loss(examples["y"], p, labels=range(NUM_CLASSES)))


def test_confident_mistakes_cost_what_they_cost(fed_avg):
    variables = variables_of(fed_avg, 0)
    w1, b1, w2, _ = variables.global_weights.trainable
    weights = [w1, b1, 0 * w2, np.float32([1000, 0, 0])]  # Logits are the last bias.
    state = server_state_of(variables)
    state = state._replace(weights=state.weights._replace(trainable=weights))
    examples = columns(np.random.default_rng(1), 2) | {"y": np.array([0, 1])}
    result = global_test(fed_avg, state, examples)
    assert (result.accuracy, result.loss) == (0.5, 500.0)


def test_a_diverged_model_has_nan_loss(fed_avg):
    variables = variables_of(fed_avg, 0)
    broken = [np.full_like(w, np.nan) for w in variables.global_weights.trainable]
    state = server_state_of(variables)
    state = state._replace(weights=state.weights._replace(trainable=broken))
    assert np.isnan(global_test(fed_avg, state, columns(np.random.default_rng(0), 3)).loss)


def test_local_variables_mean_no_global_model(fed_avg, hdafl):
    assert has_global_model(fed_avg)
    assert not has_global_model(hdafl)
    with pytest.raises(ValueError, match=r"each client has its own output/kernel, output/bias"):
        global_test(hdafl, server_state_of(variables_of(hdafl, 0)), {})


def test_what_cannot_be_tested_is_refused(fed_avg):
    state = server_state_of(variables_of(fed_avg, 0))
    examples = columns(np.random.default_rng(0), 3)
    with pytest.raises(ValueError, match="At least one example"):
        global_test(fed_avg, state, {name: column[:0] for name, column in examples.items()})
    with pytest.raises(ValueError, match="classes 0 to 2, found labels from 0 to 3"):
        global_test(fed_avg, state, examples | {"y": np.array([0, 1, 3])})


def test_pooled_auc_is_that_of_all_clients_own_scores():
    """Over pairs of a positive and a negative example: how often the positive scores higher."""
    process = make_process("hdafl", num_classes=2)
    rng = np.random.default_rng(3)
    tests = [columns(rng, n) for n in (30, 0, 20)]
    for examples in tests:
        examples["y"] %= 2
    train = {key: column[:2] for key, column in tests[0].items()}
    population = Population(
        Client(f"c{k}", train, {key: column[:0] for key, column in train.items()}, test)
        for k, test in enumerate(tests)
    )
    shared = variables_of(process, 0)
    own = [variables_of(process, 10 + k).local_weights for k in range(3)]
    state = server_state_of(shared)
    result = local_test(process, state, population, lambda k: ClientState(own[k], (), np.int32(1)))
    positive, negative = [], []
    for k, test in enumerate(tests):
        w1, b1, w2, b2 = [*shared.global_weights.trainable, *own[k].trainable]
        logits = np.maximum(test["x"] @ w1 + b1, 0) @ w2 + b2
        score = logits[:, 1] - logits[:, 0]
        positive += list(score[test["y"] == 1])
        negative += list(score[test["y"] == 0])
    higher = np.mean(np.array(positive)[:, None] > np.array(negative))
    assert result.pooled_auc == pytest.approx(higher, abs=1e-9)
    # One class alone has none, nor have tasks with more than two.
    assert (
        local_test(
            process, state, population_of_ones(), lambda k: ClientState(own[k], (), np.int32(1))
        ).pooled_auc
        is None
    )


def population_of_ones() -> Population:
    rng = np.random.default_rng(1)
    ones = {"x": columns(rng, 4)["x"], "y": np.ones(4, np.int64)}
    return Population([Client("c0", ones, ones, ones)])


def test_draws_of_predictions_follow_the_seed_and_differ_between_clients():
    process = make_process("waffle", evaluation_samples=1)
    state = process.initialize()
    same = process.init_state(0, 1, state)._replace(rounds=np.int32(1))
    examples = columns(np.random.default_rng(5), 6)
    population = Population(Client(f"c{k}", examples, examples, examples) for k in range(3))
    of = (process, state, population, lambda client: same, ["test"])
    one, again, other = (local_tests(*of, seed=seed)["test"].loss for seed in (0, 0, 1))
    np.testing.assert_array_equal(one, again)
    assert len({*one, *other}) == 6
