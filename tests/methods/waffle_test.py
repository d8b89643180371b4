"""WAFFLe: its round, its options, and a dictionary that grows."""

import dataclasses

import numpy as np
import pytest
import scipy.special
import tensorflow as tf
from scipy.special import digamma

from tff_het import methods, seeding
from tff_het.backend.names import tff
from tff_het.clients import Client, Population
from tff_het.learning.client_work import ClientState
from tff_het.learning.local_training import LocalTraining
from tff_het.learning.process import FederatedProcess
from tff_het.models import architectures, factorized, networks
from tff_het.models.model import Variables
from tff_het.simulation import cohorts, loop
from tff_het.simulation.start import Start, values_of

FEATURES, CLASSES, SEED = 5, 3, 2
TRAINING = LocalTraining(tff.learning.optimizers.build_sgdm(0.2), batch_size=4, epochs=3)


ARCHITECTURE = architectures.make(
    "tiny",
    {"x": (np.dtype(np.float32), (FEATURES,)), "y": (np.dtype(np.int64), ())},
    CLASSES,
    network=networks.mlp([6]),
)


def make(training=TRAINING, **options) -> FederatedProcess:
    return methods.build("waffle", ARCHITECTURE, training, seed=SEED, **options)


def client_of(index: int, num: int) -> Client:
    rng = np.random.default_rng(index)
    x = rng.normal(size=(num, FEATURES)).astype(np.float32)
    y = (np.argmax(x[:, :CLASSES], axis=1) + index) % CLASSES  # No two clients agree.
    columns = {"x": x, "y": y.astype(np.int64)}
    return Client(str(index), columns, columns, columns)


def argument(process, state, index: int, num: int, kept: ClientState | None = None):
    return {
        "client": np.int32(index),
        "seed": seeding.stateless_seed(SEED, seeding.CLIENT_WORK, 0, index),
        "examples": dict(client_of(index, num).train),
        "state": process.init_state(index, SEED, state) if kept is None else kept,
    }


def test_all_clients_count_the_same():
    process = make()
    state = process.initialize()
    clients = [argument(process, state, 0, 30), argument(process, state, 1, 3)]
    after = process.next(state, clients).state
    sent = process.client_update(process.download(state), clients)
    assert [float(row["weight"]) for row in sent] == [1, 1]
    changes = [tf.nest.flatten(row["update"]) for row in sent]
    for old, new, *both in zip(
        tf.nest.flatten(state.weights), tf.nest.flatten(after.weights), *changes, strict=True
    ):
        np.testing.assert_allclose(new, old + np.mean(both, axis=0), atol=1e-6)
        assert np.abs(both[0] - both[1]).max() > 1e-4


@pytest.mark.parametrize(
    "rule",
    ["logits", *(pytest.param(r, marks=pytest.mark.slow) for r in ("natural", "probabilities"))],
)
def test_one_step_against_the_formula(rule):
    """A step of SGD on the negative of eq. (12) over |D_i|, in NumPy but for the draws."""
    training = dataclasses.replace(TRAINING, epochs=None, steps=1, batch_size=7, shuffle=False)
    process = make(
        training,
        factors={"dense_1": 4},
        alpha_over_factors=0.5,
        temperature=0.5,
        posterior_rate=3.0,
        posterior_rule=rule,
    )
    model, state, num = process.model, process.initialize(), 7
    given = argument(process, state, 0, num)
    start = {
        p: v.astype(np.float64)
        for p, v in values_of(model, Variables(state.weights, given["state"].model)).items()
    }
    draws: dict[str, np.ndarray] = {}

    def elbo(values: dict[str, np.ndarray]) -> float:
        layer = lambda name: values[f"dense_1/{name}"]  # noqa: E731
        c, d = (np.log1p(np.exp(layer(f"posterior_{name}"))) for name in "cd")
        pi = 1 / (1 + np.exp(-layer("posterior_logits")))
        b = 1 / (1 + np.exp(-(layer("posterior_logits") + draws["noise"]) / 0.5))
        hidden = given["examples"]["x"] @ (
            layer("left") @ np.diag(layer("strength") * b) @ layer("right")
        )
        hidden = np.maximum(hidden + layer("bias"), 0)
        logits = hidden @ values["output/kernel"] + values["output/bias"]
        log_p = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
        likelihood = log_p[np.arange(num), given["examples"]["y"]].sum()
        v = (1 - draws["u"] ** (1 / d)) ** (1 / c)
        prior, alpha = np.cumprod(v), 2.0
        of_b = pi * np.log(pi / prior) + (1 - pi) * np.log((1 - pi) / (1 - prior))
        of_v = (c - alpha) / c * (-np.euler_gamma - digamma(d) - 1 / d)
        of_v += np.log(c * d) - np.log(alpha) - (d - 1) / d
        return likelihood - of_b.sum() - of_v.sum()

    # The draws follow from the client's seed; they are read off the layer's own calls.
    fold_in = tf.random.experimental.stateless_fold_in
    step = fold_in(fold_in(fold_in(given["seed"], 1), 0), 0)
    salt = 3  # Behind the model itself, its input and its flattening.
    u = (
        tf.random.stateless_uniform([2, 4], fold_in(step, salt), 1e-6, 1 - 1e-6)
        .numpy()
        .astype(float)
    )
    draws |= {"noise": np.log(u[0] / (1 - u[0])), "u": u[1]}

    sent = process.client_update(process.download(state), [given])[0]
    after = values_of(
        model,
        Variables(
            tf.nest.map_structure(np.add, state.weights, sent["update"]), sent["state"].model
        ),
    )
    for path, old in start.items():
        gradient = np.zeros_like(old)
        for place in np.ndindex(old.shape):
            ends = []
            for sign in (1, -1):
                moved = old.copy()
                moved[place] += sign * 1e-5
                ends.append(elbo({**start, path: moved}))
            gradient[place] = (ends[0] - ends[1]) / 2e-5
        step = 0.2 * gradient / num
        if "logits" in path:
            pi = scipy.special.expit(old)
            of_pi = 3 * step / (pi * (1 - pi))
            moved = scipy.special.logit(np.clip(pi + of_pi, 1e-6, 1 - 1e-6)) - old
            step = {"logits": 3 * step, "natural": of_pi, "probabilities": moved}[rule]
        np.testing.assert_allclose(
            after[path],
            old + step,
            rtol=1e-4,
            atol=2e-6,
            err_msg=path,
        )


def test_probabilities_stop_at_0_and_1():
    process = make(posterior_rate=1e6, posterior_rule="probabilities")
    state = process.initialize()
    for _ in range(2):
        given = [argument(process, state, 0, 30)]
        state, _, kept = process.next(state, given)
    values = values_of(process.model, Variables(state.weights, kept[0]["state"].model))
    pi = scipy.special.expit(values["dense_1/posterior_logits"].astype(np.float64))
    np.testing.assert_allclose(np.minimum(pi, 1 - pi), 1e-6, rtol=0.1)


def test_the_rule_of_probabilities_is_one_of_plain_sgd():
    momentum = dataclasses.replace(TRAINING, optimizer=tff.learning.optimizers.build_sgdm(0.2, 0.9))
    with pytest.raises(ValueError, match="without momentum"):
        make(momentum, posterior_rule="probabilities")


def test_clients_never_sampled_predict_without_a_posterior():
    process = make()
    state = process.initialize()
    x = dict(client_of(0, 9).train)
    unmet = process.init_state(0, SEED, state)
    logits = process.predict(state.weights, unmet, x)["logits"]
    for change in (3.0, -3.0):
        local = [v + np.float32(change) for v in unmet.model.trainable]
        moved = unmet._replace(model=unmet.model._replace(trainable=local))
        np.testing.assert_array_equal(process.predict(state.weights, moved, x)["logits"], logits)
        met = moved._replace(rounds=np.int32(1))
        assert np.abs(process.predict(state.weights, met, x)["logits"] - logits).max() > 0.01


def test_cached_globals_are_those_after_the_clients_last_training():
    plain, keeping = make(), make(keep_globals=True)
    state = plain.initialize()
    given = argument(plain, state, 0, 12)
    x = given["examples"]
    sent = plain.client_update(plain.download(state), [given])[0]
    trained = tf.nest.map_structure(np.add, state.weights, sent["update"])
    expected = plain.predict(trained, sent["state"], x)["logits"]
    kept = keeping.init_state(0, SEED, state)
    fresh = keeping.predict(*keeping.adapt(state, kept, x), x)["logits"]
    np.testing.assert_array_equal(fresh, plain.predict(state.weights, given["state"], x)["logits"])
    after = keeping.client_update(keeping.download(state), [{**given, "state": kept}])[0]["state"]
    weights = tf.nest.map_structure(lambda w: w + np.float32(1), state.weights)
    own = keeping.adapt(state._replace(weights=weights), after, x)
    np.testing.assert_allclose(keeping.predict(*own, x)["logits"], expected, atol=1e-5)


def test_layers_that_cannot_be_factorised_are_refused():
    with pytest.raises(ValueError, match="found none in this network called output, wide"):
        make(factors={"wide": 3, "dense_1": 3, "output": 2})


def variables(process: FederatedProcess, start: Start, client: int | None = None):
    values = {**start.values, **({} if client is None else start.clients[client])}
    return process.model.split([values[spec.path] for spec in process.model.specs])


@pytest.mark.slow
def test_dictionary_grows_for_new_clients():
    small, large = make(factors={"dense_1": 4}), make(factors={"dense_1": 9})
    population = Population([client_of(index, 12) for index in range(3)])
    settings = loop.Settings(rounds=4, seed=SEED, eval_every=4)
    result = loop.train(small, population, cohorts.uniform(3, 2, SEED), settings)
    own = {
        k: values_of(small.model, Variables(result.state.weights, state.model))
        for k in range(3)
        for state in [result.client_states.get(k, result.state)]
        if state.rounds
    }
    fresh = values_of(large.model, large.model.initial_variables(SEED))
    values = values_of(small.model, Variables(result.state.weights, result.state.initial_local))
    start = Start(
        factorized.grown(values, fresh, trained=False),
        {k: factorized.grown(v, fresh, trained=True) for k, v in own.items()},
        rounds=4,
    )
    x = dict(client_of(0, 9).train)
    assert own
    for k in own:
        before = ClientState(
            small.model.split([own[k][s.path] for s in small.model.specs]).local_weights, (), 1
        )
        grown = variables(large, start, k)
        np.testing.assert_allclose(
            large.predict(grown.global_weights, before._replace(model=grown.local_weights), x)[
                "logits"
            ],
            small.predict(result.state.weights, before, x)["logits"],
            atol=1e-5,
        )
    # The new client starts from the prior, and is the one that makes use of the new factors.
    joined = Population([client_of(index, 12) for index in range(4)])
    more = dataclasses.replace(settings, rounds=6)
    after = loop.train(large, joined, cohorts.always(3), more, start=start)
    moved = values_of(large.model, Variables(after.state.weights, after.state.initial_local))
    right = "dense_1/right"
    assert np.abs(start.values[right][4:]).max() == 0 and np.abs(moved[right][4:]).max() > 0.01
    idle = factorized.grown(own[min(own)], fresh, trained=True)["dense_1/posterior_logits"]
    assert (idle[4:] < -3).all() and (fresh["dense_1/posterior_logits"][4:] > -3).all()


def test_what_cannot_grow_is_refused():
    both = []
    for number in (4, 9):
        kind = factorized.FactorizedLayers(factors={"dense_1": number})
        model = dataclasses.replace(ARCHITECTURE, kind=kind).model(local=factorized.is_posterior)
        both.append(values_of(model, model.initial_variables(0)))
    with pytest.raises(ValueError, match=r"dense_1/left cannot grow from \[5, 9\] to \[5, 4\]"):
        factorized.grown(both[1], both[0], trained=True)
    other = {**both[1], "output/kernel": np.zeros([6, 4], np.float32)}
    with pytest.raises(ValueError, match="output/kernel cannot grow"):
        factorized.grown(both[0], other, trained=True)
    with pytest.raises(ValueError, match="only one of the two models has output/bias"):
        factorized.grown(
            {k: v for k, v in both[0].items() if "s/" not in k and "t/b" not in k},
            both[1],
            trained=True,
        )
