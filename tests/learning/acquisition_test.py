"""Acquired examples against NumPy, and training on them against steps on the same examples."""

import collections
import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from tff_het import methods
from tff_het.backend.names import keras, tff
from tff_het.evaluation.new_client import NewClient
from tff_het.learning import acquisition as acquiring
from tff_het.learning.acquisition import Acquisition
from tff_het.learning.client_work import ClientState, Download
from tff_het.learning.local_training import LocalTraining
from tff_het.learning.steps import fit, proximal
from tff_het.learning.works import local_sgd
from tff_het.models import architectures, keras_model, networks
from tff_het.models.layers import Dropout
from tff_het.models.model import ClientContext

FEATURES, CLASSES = 6, 3
SPEC = collections.OrderedDict(
    x=tf.TensorSpec([None, FEATURES], tf.float32), y=tf.TensorSpec([None], tf.int32)
)
SEED = tf.constant([3, 4])
fold_in = tf.random.experimental.stateless_fold_in


def mlp(dropout: float) -> keras.Model:
    x = keras.Input([FEATURES], name="x")
    h = Dropout(dropout)(keras.layers.Dense(8, "tanh", name="hidden")(x))
    return keras.Model(x, keras.layers.Dense(CLASSES, name="output")(h))


@pytest.fixture(scope="module")
def model():
    """Without dropout: a prediction does not depend on the seed."""
    return keras_model.from_keras(lambda: mlp(0.0), SPEC, local=["output"])


@pytest.fixture(scope="module")
def dropped():
    return keras_model.from_keras(lambda: mlp(0.5), SPEC)


def make_examples(n: int, seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {
        "x": rng.normal(size=(n, FEATURES)).astype(np.float32),
        "y": rng.integers(0, CLASSES, n).astype(np.int32),
    }


def context_of(n: int) -> ClientContext:
    return ClientContext(tf.constant(2), tf.convert_to_tensor(n), tf.constant(0))


def rounds_of(model, training, penalty=None):
    """A client's round, traced as in a process: (variables, examples, pool, seed) -> its result."""
    work = local_sgd(model, training, penalty)

    @tf.function(autograph=False)
    def run(variables, columns, pool, seed):
        state = ClientState(variables.local_weights, pool, tf.constant(0))
        download = Download(variables.global_weights, tf.constant(0))
        context = context_of(tf.shape(columns["y"])[0])
        return work.train(download, columns, context, seed, state)

    return lambda variables, examples, pool, seed=SEED: run(
        variables, {name: tf.constant(column) for name, column in examples.items()}, pool, seed
    )


def settings(acquisition: Acquisition, **kwargs) -> LocalTraining:
    defaults = {"batch_size": 4, "epochs": 2, "shuffle": False, "acquisition": acquisition}
    optimizer = tff.learning.optimizers.build_sgdm(0.1, momentum=0.9)
    return LocalTraining(optimizer, **(defaults | kwargs))


def pool_places(acquisition: Acquisition, examples, pool) -> np.ndarray:
    return acquiring.draw(acquisition, examples["y"], pool.seed).pool.numpy()


# --- Acquisition functions ----------------------------------------------------------------------


@pytest.fixture(scope="module")
def probabilities() -> np.ndarray:
    """[samples, n, classes]; samples are sure of one class of the first, of several of the next."""
    found = np.random.default_rng(0).dirichlet([0.5] * 4, size=(5, 7))
    found[:, 0] = [1, 0, 0, 0]
    found[:, 1] = np.eye(4)[[0, 1, 0, 1, 2]]
    return found


def entropy(p: np.ndarray) -> float:
    return -sum(float(v) * np.log(v) for v in p if v > 0)


@pytest.mark.parametrize(
    ("name", "formula"),
    [
        ("max_entropy", lambda p: entropy(p.mean(axis=0))),
        ("bald", lambda p: entropy(p.mean(axis=0)) - np.mean([entropy(one) for one in p])),
        ("variation_ratios", lambda p: 1 - max(np.mean(p[:, c]) for c in range(p.shape[1]))),
    ],
)
def test_functions(probabilities, name, formula):
    wanted = [formula(probabilities[:, i]) for i in range(probabilities.shape[1])]
    found = acquiring.FUNCTIONS[name](tf.constant(probabilities, tf.float32))
    np.testing.assert_allclose(found, wanted, atol=1e-6)


def test_functions_differ_where_they_should(probabilities):
    """Samples that are sure of different classes are all about the weights: BALD is the entropy."""
    scores = {name: f(probabilities).numpy() for name, f in acquiring.FUNCTIONS.items()}
    for values in scores.values():
        assert values[0] == 0
    assert scores["bald"][1] == scores["max_entropy"][1] > 1
    np.testing.assert_allclose(scores["variation_ratios"][1], 1 - 2 / 5)
    assert (scores["bald"][2:] < scores["max_entropy"][2:]).all()


# --- The pool -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n", "pool_size", "kept", "in_pool"),
    [(60, 20, 4, 20), (60, 100, 4, 48), (60, 60, 0, 60), (10, 5, 100, 0), (0, 5, 2, 0)],
)
def test_pool_and_kept_examples(n, pool_size, kept, in_pool):
    settings = Acquisition("random", 1, pool_size=pool_size, kept_per_class=kept)
    labels = np.arange(n) % CLASSES
    drawn = acquiring.draw(settings, labels, SEED)
    pool, kept_places = drawn.pool.numpy(), drawn.kept.numpy()
    assert len(pool) == in_pool
    both = np.concatenate([pool, kept_places])
    assert len(set(both)) == len(both) and set(both) <= set(range(n))
    available = np.bincount(labels, minlength=CLASSES)
    counts = np.bincount(labels[kept_places], minlength=CLASSES)
    np.testing.assert_array_equal(counts, np.minimum(available, kept))


def test_rare_classes_are_kept_whole():
    settings = Acquisition("random", 1, pool_size=9, kept_per_class=2)
    drawn = acquiring.draw(settings, np.array([7, 0, 0, 0, 0, 0]), SEED)
    assert len(drawn.kept) == 3 and 0 in drawn.kept.numpy()
    assert 0 not in drawn.pool.numpy()


def test_pool_follows_the_seed_and_is_spread_over_the_examples():
    settings = Acquisition("random", 1, pool_size=200, kept_per_class=3)
    labels = np.sort(np.arange(2000) % 10)
    draws = [
        acquiring.draw(settings, labels, tf.constant(seed)) for seed in ([1, 1], [1, 1], [1, 2])
    ]
    for one, again in zip(draws[0], draws[1], strict=True):
        np.testing.assert_array_equal(one, again)
    for one, other in zip(draws[0], draws[2], strict=True):
        assert not np.array_equal(one, other)
    # 20 of each class expected, of variance below 18: five deviations away is 21.
    counts = np.bincount(labels[draws[0].pool.numpy()], minlength=10)
    assert np.abs(counts - 20).max() < 21 and counts.min() > 0


def test_first_pools_differ_by_seed():
    settings = Acquisition("random", 1, pool_size=3)
    one, again, other = (acquiring.initial(settings, seed) for seed in (5, 5, 6))
    np.testing.assert_array_equal(one.seed, again.seed)
    assert not np.array_equal(one.seed, other.seed)
    np.testing.assert_array_equal(one.taken, [0, 0, 0])


# --- What is acquired ---------------------------------------------------------------------------


# Between these differ the scores alone, see `test_functions`; training on the acquired is tested
# with max_entropy below.
@pytest.mark.parametrize(
    "function", ["random", "bald", pytest.param("variation_ratios", marks=pytest.mark.slow)]
)
def test_never_twice_and_never_outside_of_the_pool(dropped, function):
    """Three rounds of two acquisitions until the pool of 13 is exhausted by 3 each."""
    settings_ = Acquisition(function, 3, 2, pool_size=13, kept_per_class=1, dropout_samples=2)
    examples, pool = make_examples(30), acquiring.initial(settings_, 1)
    places = pool_places(settings_, examples, pool)
    variables, before = dropped.initial_variables(0), np.zeros(13, np.int32)
    run = rounds_of(dropped, settings(settings_))
    sizes = [6, 6, 6, 6, 4, 3]
    for turn in range(3):
        result = run(variables, examples, pool)
        pool = result.state.work
        taken = pool.taken.numpy()
        np.testing.assert_array_equal(taken[before > 0], before[before > 0])
        assert result.weight == sum(sizes[2 * turn : 2 * turn + 2])
        assert result.metrics["num_examples"] == sum(sizes[2 * turn : 2 * turn + 2])
        assert result.metrics["loss"].count == 2 * sum(sizes[2 * turn : 2 * turn + 2])
        before = taken
    np.testing.assert_array_equal(np.bincount(before), [0, 3, 3, 3, 3, 1])
    assert len(places) == 13


def test_small_pools_and_none(model):
    """A client of 2 examples has a pool of 2; one of none has neither steps nor a weight."""
    settings_ = Acquisition("max_entropy", 4, 2, pool_size=6, dropout_samples=1)
    variables, pool = model.initial_variables(0), acquiring.initial(settings_, 1)
    run = rounds_of(model, settings(settings_))
    few = run(variables, make_examples(2), pool)
    np.testing.assert_array_equal(few.state.work.taken, [1, 1, 0, 0, 0, 0])
    assert few.weight == 2
    none = run(variables, make_examples(0), pool)
    assert none.weight == 0 and not np.any(none.state.work.taken)
    for change in tf.nest.flatten(none.update):
        np.testing.assert_array_equal(change, np.zeros_like(change))


def keras_entropies(model, variables, x: np.ndarray) -> np.ndarray:
    plain = mlp(0.0)
    plain.set_weights([v.numpy() for v in model.join(variables)])
    logits = plain(x).numpy().astype(np.float64)
    p = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    return -(p * np.log(p)).sum(axis=1)


def test_highest_scores_of_the_variables_of_that_moment(model):
    """130 of the pool: several batches, the last one short. Training turns the weights around."""
    settings_ = Acquisition("max_entropy", 7, 2, pool_size=130, dropout_samples=1)
    examples, pool = make_examples(150), acquiring.initial(settings_, 1)
    first = model.initial_variables(0)
    second = tf.nest.map_structure(lambda v: tf.reverse(v, [0]) + 0.1, first)

    def train_on(variables, batch, client, seed):
        assert client.num_examples == 7 and len(batch["x"]) == 7
        return second, tf.zeros([])

    _, _, after = acquiring.train_on_acquired(
        model, settings_, train_on, first, examples, context_of(150), SEED, pool, tf.zeros([])
    )
    places, taken = pool_places(settings_, examples, pool), after.taken.numpy()
    assert len(places) == 130
    x = examples["x"][places]
    wanted = np.argsort(-keras_entropies(model, first, x))[:7]
    assert set(np.flatnonzero(taken == 1)) == set(wanted)
    scores = keras_entropies(model, second, x)
    scores[wanted] = -1
    assert set(np.flatnonzero(taken == 2)) == set(np.argsort(-scores)[:7])


def test_of_equal_scores_the_first_in_the_pool(model):
    settings_ = Acquisition("max_entropy", 5, 2, pool_size=60, dropout_samples=1)
    examples, pool = make_examples(70), acquiring.initial(settings_, 1)
    zeros = tf.nest.map_structure(tf.zeros_like, model.initial_variables(0))
    after = acquiring.train_on_acquired(
        model,
        settings_,
        lambda variables, *_: (variables, tf.zeros([])),
        zeros,
        examples,
        context_of(70),
        SEED,
        pool,
        tf.zeros([]),
    )[2]
    np.testing.assert_array_equal(after.taken[:10], [1] * 5 + [2] * 5)


def test_samples_have_seeds_of_their_own(dropped):
    """Scores from predictions called one by one, and another seed takes others."""
    settings_ = Acquisition("bald", 4, pool_size=60, dropout_samples=3)
    examples, pool = make_examples(60), acquiring.initial(settings_, 1)
    variables = dropped.initial_variables(0)
    run = rounds_of(dropped, settings(settings_))
    found = [run(variables, examples, pool, tf.constant(seed)) for seed in ([3, 4], [3, 4], [3, 5])]
    taken = [result.state.work.taken.numpy() for result in found]
    np.testing.assert_array_equal(taken[0], taken[1])
    assert not np.array_equal(taken[0], taken[2])

    places = pool_places(settings_, examples, pool)
    score_seed = tf.random.experimental.stateless_split(fold_in(SEED, 0), 2)[0]
    places = np.concatenate([places, places[:40]])  # Filled up to two batches of 50.
    samples = np.empty([3, 100, CLASSES])
    for sample in range(3):
        for batch in range(2):
            x = examples["x"][places[50 * batch :][:50]]
            seed = fold_in(fold_in(score_seed, batch), sample)
            logits = dropped.predict(variables, {"x": x}, context_of(60), seed, True)["logits"]
            samples[sample, 50 * batch :][:50] = tf.nn.softmax(logits)
    assert np.ptp(samples, axis=0).max() > 0.05  # Dropout is on.
    scores = [
        entropy(samples[:, i].mean(axis=0)) - np.mean([entropy(p) for p in samples[:, i]])
        for i in range(60)
    ]
    assert set(np.flatnonzero(taken[0])) == set(np.argsort(scores)[-4:])


def test_random_looks_at_no_example(model):
    """A model that cannot be called, and examples that are not numbers, change no choice."""

    def fail(*args):
        raise AssertionError("The pool was looked at.")

    settings_ = Acquisition("random", 4, pool_size=20)
    blind = dataclasses.replace(model, predict=fail)
    examples, pool = make_examples(25), acquiring.initial(settings_, 1)
    variables = model.initial_variables(0)
    hidden = examples | {"x": np.full_like(examples["x"], np.nan)}
    run = rounds_of(blind, settings(settings_))
    found = [
        run(variables, columns, pool, tf.constant(seed))
        for columns, seed in ((examples, [3, 4]), (hidden, [3, 4]), (examples, [3, 5]))
    ]
    taken = [result.state.work.taken.numpy() for result in found]
    np.testing.assert_array_equal(taken[0], taken[1])
    assert not np.array_equal(taken[0], taken[2])


def test_labels_that_were_not_acquired_are_not_read(dropped):
    settings_ = Acquisition("max_entropy", 4, pool_size=30, dropout_samples=2)
    examples, pool = make_examples(30), acquiring.initial(settings_, 1)
    variables = dropped.initial_variables(0)
    run = rounds_of(dropped, settings(settings_))
    one = run(variables, examples, pool)
    acquired = pool_places(settings_, examples, pool)[one.state.work.taken.numpy() == 1]
    labels = (examples["y"] + 1) % CLASSES
    labels[acquired] = examples["y"][acquired]
    two = run(variables, examples | {"y": labels}, pool)
    tf.nest.map_structure(np.testing.assert_array_equal, one, two)
    three = run(variables, examples | {"y": (labels + 1) % CLASSES}, pool)
    assert not np.array_equal(tf.nest.flatten(three.update)[0], tf.nest.flatten(one.update)[0])


# --- Training on it -----------------------------------------------------------------------------


def test_round_against_steps_on_the_same_examples(model):
    """Two acquisitions, each with fresh momentum; the penalty knows the start of the round."""
    settings_ = Acquisition("max_entropy", 5, 2, pool_size=20, kept_per_class=1, dropout_samples=1)
    training = settings(settings_)
    examples, pool = make_examples(30), acquiring.initial(settings_, 1)
    start = model.initial_variables(0)

    result = rounds_of(model, training, lambda download, state: proximal(2.0, download.weights))(
        start, examples, pool
    )
    places, kept = (d.numpy() for d in acquiring.draw(settings_, examples["y"], pool.seed))
    variables, totals = start, collections.Counter()
    for turn in (1, 2):
        entropies = keras_entropies(model, variables, examples["x"][places])
        acquired = np.flatnonzero(result.state.work.taken.numpy() == turn)
        acquired = acquired[np.argsort(-entropies[acquired])]
        rows = np.concatenate([places[acquired], kept])
        assert len(rows) == 8
        batch = {name: column[rows] for name, column in examples.items()}
        variables, metrics = fit(
            model,
            dataclasses.replace(training, acquisition=None),
            variables,
            batch,
            context_of(8),
            SEED,  # Nothing is drawn.
            tf.constant(0),
            proximal(2.0, start.global_weights),
        )
        totals.update(
            {name: metrics[name].total.numpy() for name in ("loss", "accuracy")}
            | {"count": metrics["loss"].count.numpy()}
        )
    for old, new, change in zip(
        tf.nest.flatten(start.global_weights),
        tf.nest.flatten(variables.global_weights),
        tf.nest.flatten(result.update),
        strict=True,
    ):
        np.testing.assert_allclose(change, new - old, atol=1e-5)
        assert np.abs(change).max() > 1e-3
    for found, wanted in zip(
        tf.nest.flatten(result.state.model), tf.nest.flatten(variables.local_weights), strict=True
    ):
        np.testing.assert_allclose(found, wanted, atol=1e-5)
    assert result.weight == 16.0 and result.metrics["num_examples"] == 16
    for name in ("loss", "accuracy"):
        np.testing.assert_allclose(result.metrics[name].total, totals[name], rtol=1e-5)
        assert result.metrics[name].count == totals["count"] == 32


def test_acquisitions_have_seeds_of_their_own(dropped):
    """What is drawn in training differs: two acquisitions of the same examples end differently."""
    examples = make_examples(4)
    settings_ = Acquisition("random", 1, 2, pool_size=1, kept_per_class=2)
    seeds = []

    def train_on(variables, batch, client, seed):
        seeds.append(tuple(seed.numpy()))
        return variables, tf.zeros([])

    variables, pool = dropped.initial_variables(0), acquiring.initial(settings_, 1)
    acquiring.train_on_acquired(
        dropped, settings_, train_on, variables, examples, context_of(4), SEED, pool, tf.zeros([])
    )
    assert len(set(seeds)) == 2


# --- Refusals -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"function": "entropy"}, "one of random, max_entropy, bald, variation_ratios; found 'ent"),
        ({"size": 2.5}, "size: expected a whole number from 1 to .* found 2.5"),
        ({"per_round": 0}, "per_round: expected a whole number from 1 to .* found 0"),
        ({"pool_size": float("nan")}, "pool_size: expected a whole number from 1 to .* found nan"),
        ({"dropout_samples": 0}, "dropout_samples: expected a whole number from 1 to .* found 0"),
        ({"kept_per_class": -1}, "kept_per_class: expected a whole number from 0 to .* found -1"),
        ({"size": 5, "pool_size": 4}, "of 5 examples does not fit a pool of 4"),
    ],
)
def test_settings_that_make_no_sense(changes, message):
    with pytest.raises(ValueError, match=message):
        Acquisition(**({"function": "random"} | changes))


def test_bald_needs_a_model_that_draws(model, dropped):
    undrawn = keras_model.from_keras(
        lambda: keras.Sequential([keras.Input([FEATURES]), keras.layers.Dense(3)]), SPEC
    )
    assert dropped.draws_in_training and not undrawn.draws_in_training
    with pytest.raises(ValueError, match="this model draws nothing: take a network with dropout"):
        local_sgd(undrawn, settings(Acquisition("bald")))
    local_sgd(undrawn, settings(Acquisition("max_entropy")))


def test_examples_need_their_class(model):
    with pytest.raises(ValueError, match="need a column y; found x"):
        local_sgd(
            dataclasses.replace(model, example_spec={"x": SPEC["x"]}),
            settings(Acquisition("random")),
        )


def architecture():
    element = {"x": (np.dtype(np.float32), (FEATURES,)), "y": (np.dtype(np.int32), ())}
    return architectures.make("tiny", element, CLASSES, networks.mlp([4]))


@pytest.mark.parametrize(
    ("method", "message"),
    [
        ("q_ffl", "q_ffl weighs a client by its loss on all of its examples"),
        (
            "fed_recon",
            r"as in federated reconstruction .*acquisition=random",
        ),
    ],
)
def test_methods_that_train_on_all_examples_refuse(method, message):
    with pytest.raises(ValueError, match=message):
        methods.build(method, architecture(), settings(Acquisition("random")), seed=0)


def test_fitting_a_new_client_refuses():
    training = dataclasses.replace(settings(Acquisition("random")), acquisition=None)
    process = methods.build("hdafl", architecture(), training, seed=0)
    state = process.initialize()
    new = NewClient(process, settings(Acquisition("random")))
    with pytest.raises(ValueError, match="when a new client is fitted"):
        new.fit(state.weights, process.init_state(0, 0, state), make_examples(5), seed=[0, 0])
