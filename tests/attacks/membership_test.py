"""Membership inference: sure where all was learnt by heart, chance where nothing was learnt."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf
from scipy import stats

from tff_het import methods
from tff_het.attacks import membership
from tff_het.attacks.attacker import FITTED, INITIAL, LOCAL_PARTS, PRIVATE, Attacker
from tff_het.attacks.membership import Outputs
from tff_het.simulation import runtime

NUM_VICTIMS = 3
# Methods with a penalty of their own, which keeps models from learning examples by heart.
REGULARISED = ("fed_prox", "waffle")
GROUPS = {"shadows": 0, "victims": 1}


@pytest.fixture(autouse=True, scope="module")
def _runtime():
    with runtime.use("in_process", clients_in_parallel=1):
        yield


@pytest.fixture(scope="module")
def federations(world):
    """Name of a method -> shadows and victims that trained on their own."""
    made = {}

    def of(method: str, epochs: int = 30):
        if (method, epochs) not in made:
            process = world.build(method, epochs)
            made[method, epochs] = [
                world.train(process, group=group, num_clients=NUM_VICTIMS)
                for group in GROUPS.values()
            ]
        return made[method, epochs]

    return of


def outputs(world, federation, local: str) -> list[Outputs]:
    attacker = Attacker(
        federation.process,
        federation.state,
        own_examples=world.draw(60, 9),
        training=world.training(5, 0.02),
        seed=3,
        local=local,
    )
    # Whoever does not ask for the private part does not use it, even where it lies about.
    targets = federation.targets(private=True)
    return [membership.ask(attacker, target) for target in targets]


def attack(world, federations, local: str = FITTED) -> list[membership.Success]:
    shadows, victims = (outputs(world, one, local) for one in federations)
    return membership.infer(shadows, victims, seed=4)


def chance(num_asked: int) -> tuple[float, float]:
    """Where the accuracy of guesses lies in all but one of 10,000 cases."""
    low, high = stats.binom.interval(0.9999, num_asked, 0.5)
    return low / num_asked, high / num_asked


def test_examples_that_were_learnt_by_heart_are_found(world, federations):
    found = attack(world, federations("fed_avg"))
    accuracy = np.mean([one.accuracy for one in found])
    assert accuracy > 0.75 > chance(80 * NUM_VICTIMS)[1]
    assert np.mean([one.f1 for one in found]) > 0.75


def test_a_model_that_learnt_nothing_tells_nothing(world):
    """As an attacker with the same shadows sees it, whose models did learn."""
    process = world.build("fed_avg")
    shadows, victims = (
        world.train(process, group=group, num_clients=NUM_VICTIMS) for group in GROUPS.values()
    )
    untrained = [
        target._replace(seen=dataclasses.replace(target.seen, after=target.seen.before))
        for target in dataclasses.replace(victims, state=process.initialize()).targets()
    ]
    attacker = Attacker(
        process,
        shadows.state,
        own_examples=world.draw(60, 9),
        training=world.training(5),
        seed=3,
    )
    found = membership.infer(
        outputs(world, shadows, FITTED),
        [membership.ask(attacker, target) for target in untrained],
        seed=4,
    )
    low, high = chance(80 * NUM_VICTIMS)
    assert low < np.mean([one.accuracy for one in found]) < high


# Run by the short test command as well: one that keeps nothing, one with local variables.
NOT_SLOW = ("fed_avg", "hdafl")
# FedProto's clients send features and no change of a model, which `observe` refuses.
OBSERVED = [name for name in methods.names() if name != "fed_proto"]


@pytest.mark.parametrize(
    "method",
    [pytest.param(n, marks=() if n in NOT_SLOW else pytest.mark.slow) for n in OBSERVED],
)
def test_every_method_that_sends_changes_can_be_attacked(method, world, federations):
    """By one code path; anyone who holds the private part too finds the members of any."""
    found = federations(method, 30)
    results = {local: attack(world, found, local) for local in LOCAL_PARTS}
    accuracy = {local: np.mean([s.accuracy for s in r]) for local, r in results.items()}
    if method not in REGULARISED:
        assert accuracy[PRIVATE] > 0.75
    model = found[0].process.model
    keeps = bool(tf.nest.flatten(found[0].last[0]["state"].work))
    if not any(spec.local for spec in model.specs) and not keeps:
        assert results[FITTED] == results[INITIAL] == results[PRIVATE]
    if all(spec.local for spec in model.specs):  # Nothing travels.
        low, high = chance(80 * NUM_VICTIMS)
        assert low < accuracy[FITTED] < high and low < accuracy[INITIAL] < high


@pytest.mark.slow
@pytest.mark.parametrize("method", ["hdafl", "lg_fedavg", "waffle"])
def test_what_is_private_does_not_matter(method, world, federations, monkeypatch):
    """Exchanged between clients it changes no bit of what an attacker sees, unless he holds it."""
    _, victims = federations(method)
    wanted = {local: outputs(world, victims, local) for local in LOCAL_PARTS}
    update = victims.process.client_update

    class Exchanged:
        type_signature = update.type_signature

        def __call__(self, *args):
            rows = list(update(*args))
            states = [row["state"] for row in rows]
            for row, state in zip(rows, states[1:] + states[:1], strict=True):
                row["state"] = state
            return rows

    monkeypatch.setattr(victims.process, "client_update", Exchanged())
    for local in LOCAL_PARTS:
        found = outputs(world, victims, local)
        same = [
            np.array_equal(a, b)
            for one, other in zip(found, wanted[local], strict=True)
            for a, b in zip(one, other, strict=True)
        ]
        assert all(same) == (local != PRIVATE)


def test_local_variables_are_fitted_beside_the_observed_ones(world, federations):
    """On the attacker's examples alone, which the model then fits better than as it begins."""
    _, victims = federations("hdafl")
    (target, *_) = victims.targets()
    own = world.draw(60, 9)
    losses, states = {}, {}
    for local in (INITIAL, FITTED):
        attacker = Attacker(
            victims.process,
            victims.state,
            own_examples=own,
            training=world.training(5),
            seed=3,
            local=local,
        )
        model = attacker.reconstruct(target.seen)
        for found, seen in zip(
            tf.nest.flatten(model.weights), tf.nest.flatten(target.seen.after), strict=True
        ):
            np.testing.assert_array_equal(found, seen)
        logits = attacker.logits(model, own)
        log_p = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
        losses[local] = -log_p[np.arange(60), own["y"]].mean()
        states[local] = model.state
    assert losses[FITTED] < losses[INITIAL] - 0.1
    # What the client was sent plays no part in it.
    zeros = tf.nest.map_structure(np.zeros_like, target.seen.before)
    again = attacker.reconstruct(dataclasses.replace(target.seen, before=zeros))
    for a, b in zip(
        tf.nest.flatten(states[FITTED].model), tf.nest.flatten(again.state.model), strict=True
    ):
        np.testing.assert_array_equal(a, b)
    start = victims.process.init_state(0, 3, victims.state)
    for a, b in zip(
        tf.nest.flatten(states[INITIAL].model), tf.nest.flatten(start.model), strict=True
    ):
        np.testing.assert_array_equal(a, b)


def made_up(rng, n: int, advantage: float) -> Outputs:
    """Logits of members that are higher by this for the right class."""

    def draw(more: float):
        labels = rng.integers(0, 5, n)
        logits = rng.normal(size=(n, 5))
        logits[np.arange(n), labels] += more
        return logits, labels

    logits, labels = map(np.concatenate, zip(draw(advantage), draw(0.0), strict=True))
    return Outputs(logits, labels, np.repeat([True, False], n))


def test_successes_are_counted_as_defined():
    """Members and others that cannot be mistaken; with the victim's exchanged, all is wrong."""
    rng = np.random.default_rng(0)
    shadow, victim = made_up(rng, 50, 40.0), made_up(rng, 50, 40.0)
    exchanged = victim._replace(member=~victim.member)
    right, wrong = membership.infer([shadow], [victim, exchanged], seed=0)
    assert right.accuracy > 0.95 and right.f1 > 0.95
    assert wrong.accuracy == pytest.approx(1 - right.accuracy)
    assert wrong.f1 < 0.05


def test_seeds_decide(world):
    rng = np.random.default_rng(0)
    shadow, victim = made_up(rng, 200, 1.0), made_up(rng, 200, 1.0)
    first, again = (membership.infer([shadow], [victim], seed=0) for _ in range(2))
    assert first == again


def test_what_is_refused(world, federations):
    _, victims = federations("hdafl")
    (target, *_) = victims.targets()
    options = {"training": world.training(1), "seed": 3}
    make = dataclasses.replace  # Of observations.
    with pytest.raises(ValueError, match="local must be one of fitted, initial, private"):
        Attacker(
            victims.process, victims.state, own_examples=world.draw(5, 9), local="own", **options
        )
    with pytest.raises(ValueError, match="examples of the attacker's own, found 0"):
        Attacker(victims.process, victims.state, own_examples=world.draw(0, 9), **options)
    attacker = Attacker(
        victims.process, victims.state, own_examples=world.draw(5, 9), local=PRIVATE, **options
    )
    with pytest.raises(ValueError, match="ask for it"):
        attacker.reconstruct(make(target.seen, private=None))
    fewer = {name: column[:-1] for name, column in target.others.items()}
    with pytest.raises(ValueError, match=r"as many members as others.*40 and 39"):
        membership.ask(attacker, target._replace(others=fewer))
    with pytest.raises(ValueError, match="at least one, found 0"):
        membership.infer([], [], seed=0)
    rng = np.random.default_rng(0)
    diverged = made_up(rng, 5, 0.0)
    diverged.logits[0, 0] = np.nan
    with pytest.raises(ValueError, match="not finite"):
        membership.infer([diverged], [], seed=0)
