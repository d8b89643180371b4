"""What a client keeps reaches neither the server nor another client.

At learning rate 0 nothing is learned from local values, so that changing all of a client's may
change nothing elsewhere but how well its model is said to do. Leaks planted in each method are
found. (Where norms of updates are weights, these are then 0: what else is in them is not seen.)
"""

import collections

import numpy as np
import pytest
import tensorflow as tf
from cases import CASES, SEED, Case, build, by_client, make_clients, params

from tff_het.learning import composer

CHANGED = 4  # A client.
RATE = 0.0
SLOW = pytest.mark.slow


KEEPING = params(case for case in CASES if case.keeps_something and not case.sends_kept)
# Of those whose formulas are tested with clients that return, the slow tests look at the metrics.
_LATER = {"apfl", "ditto", "fed_babu", "fed_bn", "fed_dyn", "fed_rep", "p_fed_me", "scaffold"}
SOONER = [
    p if p.values[0].method not in _LATER else pytest.param(*p.values, id=p.id, marks=SLOW)
    for p in KEEPING
]


def changed(state):
    """The same state with other values, all of them."""
    rng = np.random.default_rng(3)

    def other(value):
        value = np.asarray(value)
        if value.dtype.kind == "f":
            return (value + rng.normal(size=value.shape)).astype(value.dtype)
        if value.dtype.kind == "b":
            return ~value
        # Which examples were acquired, not how many: that, a client sends as its weight.
        return np.roll(value, 1) if value.ndim else value + value.dtype.type(1)

    others = tf.nest.map_structure(other, state)
    assert not any(map(np.array_equal, tf.nest.flatten(others), tf.nest.flatten(state)))
    return others


def seen(process, state, clients) -> dict[str, list[bytes]]:
    """What a round changes anywhere but at one client, by name."""
    sent = by_client(process.client_update(process.download(state), clients))
    output = process.next(state, clients)
    kept, metrics = by_client(output.client_states), dict(output.metrics)
    own, train = sent.pop(CHANGED), metrics.pop("train")
    del kept[CHANGED]
    values = {
        "server": (output.state, metrics),
        "other clients": (sent, kept),
        "update": own["update"],
        "weight": own["weight"],
    } | {name: (own["metrics"][name], train[name]) for name in train}
    return {
        name: [np.asarray(v).tobytes() for v in tf.nest.flatten(value)]
        for name, value in values.items()
    }


def check(case: Case) -> None:
    """Raises AssertionError, with names, if anything changes that should not."""
    process = build(case, SEED, RATE)
    state = process.initialize()
    clients = make_clients(process, state)
    # After a round clients have acquired examples, and have the variables that they keep.
    state, _, results = process.next(state, clients)
    states = {index: result["state"] for index, result in by_client(results).items()}

    def see(states):
        given = [
            collections.OrderedDict(client, state=states[int(client["client"])])
            for client in clients
        ]
        return seen(process, state, given)

    before, after = see(states), see(states | {CHANGED: changed(states[CHANGED])})
    found = {name for name in before if before[name] != after[name]}
    leaked = found - case.training_metrics
    assert not leaked, leaked
    # What was changed is used, unless for predictions alone.
    assert "loss" in found or case.keeps or case.frozen


@pytest.mark.parametrize("case", SOONER)
def test_local_values_change_nothing_elsewhere(case):
    check(case)


@pytest.mark.slow
@pytest.mark.parametrize("case", KEEPING)
def test_planted_leaks_are_found(case, monkeypatch):
    """Something of a client's state in its update, in its weight and in a metric, each by name."""

    def leaking(model, client_work, **parts):
        def train(download, examples, client, seed, state):
            result = client_work.train(download, examples, client, seed, state)
            flat = [tf.reshape(tf.cast(v, tf.float32), [-1]) for v in tf.nest.flatten(state)]
            # Of a moderate size, and another one for the same values in another order.
            secret = tf.reduce_mean(tf.cumsum(tf.cos(tf.concat(flat, axis=0))))
            return result._replace(
                update=tf.nest.map_structure(lambda value: value + secret, result.update),
                weight=result.weight + secret,
                metrics=collections.OrderedDict(result.metrics, leaked=secret),
            )

        return composer.compose(model, client_work._replace(train=train), **parts)

    monkeypatch.setattr(f"tff_het.methods.{case.method}.compose", leaking)
    with pytest.raises(AssertionError) as caught:
        check(case)
    leaked = str(caught.value)
    assert all(f"'{name}'" in leaked for name in ("weight", "leaked"))
    assert case.method == "local_only" or "'update'" in leaked  # That one sends none.
