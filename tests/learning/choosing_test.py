"""Toy problems with known answers: which model is taken, and by what score."""

import dataclasses
import itertools
from collections.abc import Iterator

import numpy as np
import pytest
import tensorflow as tf

from tff_het import seeding
from tff_het.backend.names import tff
from tff_het.learning.choosing import NO_CLIENT, best
from tff_het.learning.stacking import Signed, StackFactory
from tff_het.learning.types import computation, specs_of, type_of
from tff_het.models import architectures
from tff_het.models.layers import Dropout
from tff_het.models.model import ClientContext, Variables, Weights
from tff_het.simulation import runtime

CLASSES = 4
ELEMENT = {"x": (np.dtype(np.float32), (CLASSES,)), "y": (np.dtype(np.int32), ())}
NUM_EXAMPLES = 1203  # Three batches, the last of which is short.


def linear(x, num_classes, layers):
    return x, layers.output(num_classes)(x)


def dropping(x, num_classes, layers):
    return x, layers.output(num_classes)(Dropout(0.5)(x))


def model_of(network):
    return architectures.make("small", ELEMENT, CLASSES, network).model(local=())


def examples():
    """The class is where the largest input is, which is by far the largest."""
    rng = np.random.default_rng(0)
    y = np.arange(NUM_EXAMPLES, dtype=np.int32) % CLASSES
    x = rng.uniform(-0.2, 0.2, (NUM_EXAMPLES, CLASSES)) + np.eye(CLASSES)[y]
    return {"x": x.astype(np.float32), "y": y}


def chooses(model, held=None, *, samples: int = 1, seed: int = 0, mean_competes: bool = False):
    held = examples() if held is None else held
    return best(model, held, samples, seed, mean_competes=mean_competes)


START = Weights([np.full((CLASSES, CLASSES), 0.25, np.float32), np.zeros(CLASSES, np.float32)], [])


def sending(kernel, bias=(0, 0, 0, 0)) -> Weights:
    """The update of a client whose weights are these."""
    after = (np.asarray(kernel, np.float32), np.asarray(bias, np.float32))
    return Weights([w - old for w, old in zip(after, START.trainable, strict=True)], [])


def knowing(*classes: int) -> Weights:
    """Of a client that tells these classes from all others, and says the first of them else."""
    kernel = np.zeros((CLASSES, CLASSES))
    kernel[classes, classes] = 1
    return sending(kernel, 0.5 * (np.arange(CLASSES) == classes[0]))


SLOW_WORKER = pytest.param("worker-4", marks=pytest.mark.slow)


@pytest.fixture(scope="module", params=["in_process-1", "in_process-4", SLOW_WORKER])
def _somewhere(request) -> Iterator[None]:
    name, threads = request.param.split("-")
    with runtime.use(name, clients_in_parallel=int(threads)):
        yield


@pytest.fixture(scope="module")
def round_of():
    """(server step, model) -> a round: {client: update} in the order of arrival, and weights."""

    def make(step, model):
        change_type = type_of(model.tensor_specs.global_weights)
        sent_type = tff.to_type(Signed(np.int32, change_type))
        stack = StackFactory().create(sent_type, tff.TensorType(np.float32))
        stack_type = stack.next.type_signature.result.result.member
        state_type = type_of(specs_of(step.initial()))
        next_fn = computation(step.step, state_type, change_type, stack_type)

        @tff.federated_computation(
            tff.FederatedType(state_type, tff.SERVER),
            tff.FederatedType(change_type, tff.SERVER),
            tff.FederatedType(sent_type, tff.CLIENTS),
            tff.FederatedType(np.float32, tff.CLIENTS),
        )
        def run(state, weights, updates, counts):
            stacked = stack.next(stack.initialize(), updates, counts)
            return tff.templates.MeasuredProcessOutput(
                *tff.federated_map(next_fn, (state, weights, stacked.result))
            )

        def call(state, updates, counts=None, start=START):
            signed = [Signed(np.int32(client), change) for client, change in updates.items()]
            return run(state, start, signed, counts or [1.0] * len(signed))

        return call

    return make


@pytest.fixture(scope="module")
def linear_rounds(round_of):
    """By whether the mean competes: the server step, and its round."""
    model = model_of(linear)
    steps = {competes: chooses(model, mean_competes=competes) for competes in (False, True)}
    return {competes: (step, round_of(step, model)) for competes, step in steps.items()}


def score(change: Weights, data) -> float:
    """Accuracy, in NumPy."""
    kernel, bias = (w + c for w, c in zip(START.trainable, change.trainable, strict=True))
    return float(np.mean(np.argmax(data["x"] @ kernel + bias, axis=1) == data["y"]))


# By client: how many of the four classes it gets right.
KNOWN = {7: knowing(0, 1), 2: knowing(3), 11: knowing(2, 0, 1), 5: knowing(1, 2)}


@pytest.mark.usefixtures("_somewhere")
def test_best_picks_the_known_client_under_every_order_of_arrival(linear_rounds):
    step, run = linear_rounds[False]
    state = step.initial()
    for order in itertools.permutations(KNOWN):
        found = run(state, {client: KNOWN[client] for client in order})
        assert found.measurements["client"] == 11
        assert list(found.measurements["clients"]) == [2, 5, 7, 11]
        wanted = [score(KNOWN[client], examples()) for client in (2, 5, 7, 11)]
        np.testing.assert_allclose(found.measurements["accuracies"], wanted, rtol=1e-6)
        assert sorted(np.round(wanted, 1)) == [0.2, 0.5, 0.5, 0.8]
        assert found.measurements["accuracy"] == found.measurements["accuracies"][3]
        for new, old, change in zip(
            found.result.trainable, START.trainable, KNOWN[11].trainable, strict=True
        ):
            np.testing.assert_array_equal(new, old + change)


@pytest.mark.usefixtures("_somewhere")
def test_of_equals_the_lowest_client(linear_rounds):
    step, run = linear_rounds[False]
    # Equally good, not the same.
    tied = {9: knowing(0, 1, 2, 3), 4: knowing(3, 2, 1, 0), 6: knowing(1, 2), 8: knowing(3)}
    for order in itertools.permutations(tied):
        found = run(step.initial(), {client: tied[client] for client in order})
        assert found.measurements["accuracy"] == 1.0
        assert found.measurements["client"] == 4


@pytest.mark.usefixtures("_somewhere")
@pytest.mark.parametrize("mean_competes", [False, True])
def test_a_round_without_any_model_changes_nothing(mean_competes, linear_rounds):
    step, run = linear_rounds[mean_competes]
    found = run(step.initial(), KNOWN, [0.0] * 4)
    for new, old in zip(found.result.trainable, START.trainable, strict=True):
        np.testing.assert_array_equal(new, old)
    assert found.measurements["client"] == NO_CLIENT
    # Who counts nothing is no candidate beside others either.
    found = run(step.initial(), KNOWN, [1.0, 1.0, 0.0, 1.0])
    assert 11 not in found.measurements["clients"]


@pytest.mark.usefixtures("_somewhere")
def test_the_better_of_the_two_is_never_below_either(linear_rounds):
    """Against NumPy, for clients whose mean is better, worse and as good as the best of them."""
    step, run = linear_rounds[True]
    state, data = step.initial(), examples()
    rng = np.random.default_rng(3)
    noisy = [
        {c: sending(np.eye(CLASSES) + rng.normal(0, s, (CLASSES, CLASSES))) for c in (3, 1, 2)}
        for s in np.linspace(0.2, 2.0, 30)
    ]
    ties = [{5: knowing(0, 1), 3: knowing(0, 1)}, {6: knowing(1, 2, 3, 0)}]
    taken = []
    for updates in [*noisy, *ties]:
        found = run(state, updates)
        pairs = zip(*(update.trainable for update in updates.values()), strict=True)
        mean = Weights([np.mean(parts, axis=0) for parts in pairs], [])
        scores = {NO_CLIENT: score(mean, data)}
        scores |= {client: score(updates[client], data) for client in sorted(updates)}
        assert list(found.measurements["clients"]) == list(scores)
        np.testing.assert_allclose(found.measurements["accuracies"], [*scores.values()], rtol=1e-6)
        highest = max(scores.values())
        assert found.measurements["accuracy"] == pytest.approx(highest, rel=1e-6)
        # The mean where it is as good (Algorithm 3), the lowest client of equals.
        wanted = next(client for client, value in scores.items() if value == highest)
        assert found.measurements["client"] == wanted
        change = mean if wanted == NO_CLIENT else updates[wanted]
        for new, old, moved in zip(
            found.result.trainable, START.trainable, change.trainable, strict=True
        ):
            np.testing.assert_allclose(new, old + moved, atol=1e-6)
        taken.append(int(found.measurements["client"]))
    assert set(taken[:-2]) == {NO_CLIENT, 1, 2, 3}
    assert taken[-2:] == [NO_CLIENT, NO_CLIENT]


# --- Under dropout ------------------------------------------------------------------------------


def transcription(model, change: Weights, seed, round_num: int, samples: int) -> float:
    """The mean over passes, one after another, of what `Model.predict` gives under dropout."""
    fold_in = tf.random.experimental.stateless_fold_in
    data = examples()
    weights = Weights([w + c for w, c in zip(START.trainable, change.trainable, strict=True)], [])
    variables = Variables(weights, Weights([], []))
    client = ClientContext(*map(tf.constant, (0, NUM_EXAMPLES, 1)))
    predict = tf.function(
        lambda x, seed: model.predict(variables, {"x": x}, client, seed, True)["logits"]
    )
    correct = 0
    for start in range(0, NUM_EXAMPLES, 500):
        x, y = data["x"][start : start + 500], data["y"][start : start + 500]
        total = 0.0
        for index in range(samples):
            own = fold_in(fold_in(fold_in(seed, round_num), start), index)
            logits = predict(tf.constant(x), own)
            total = total + tf.nn.softmax(logits).numpy().astype(np.float64)
        correct += int(np.sum(np.argmax(total, axis=1) == y))
    return correct / NUM_EXAMPLES


@pytest.fixture
def _here():
    with runtime.use("in_process", clients_in_parallel=1):
        yield


@pytest.mark.usefixtures("_here")
def test_scores_are_averaged_over_dropout(round_of):
    """Round by round against the transcription; each round draws other masks."""
    model = model_of(dropping)
    step = chooses(model, samples=3, seed=4)
    run, state = round_of(step, model), step.initial()
    own_seed, accuracies = seeding.stateless_seed(4, seeding.SERVER), []
    for round_num in range(3):
        found = run(state, {8: knowing(0, 1, 2, 3), 2: knowing(0, 3)})
        wanted = [
            transcription(model, change, own_seed, round_num, 3)
            for change in (knowing(0, 3), knowing(0, 1, 2, 3))
        ]
        np.testing.assert_allclose(found.measurements["accuracies"], wanted, rtol=1e-6)
        accuracies.append(tuple(found.measurements["accuracies"]))
        again = run(state, {2: knowing(0, 3), 8: knowing(0, 1, 2, 3)})
        assert tuple(again.measurements["accuracies"]) == accuracies[-1]
        state = found.state
    assert state.rounds == 3
    assert len(set(accuracies)) == 3
    # Without dropout the second of the models is right every time.
    assert max(accuracy for _, accuracy in accuracies) < 0.95
    other = chooses(model, samples=3, seed=5)
    found = run(other.initial(), {8: knowing(0, 1, 2, 3), 2: knowing(0, 3)})
    assert tuple(found.measurements["accuracies"]) != accuracies[0]


@pytest.mark.usefixtures("_here")
def test_equal_models_have_equal_scores_under_dropout(round_of):
    """The masks are the models' own of nobody: where weights are the same, so is the score."""
    model = model_of(dropping)
    step = chooses(model, mean_competes=True)
    same = {client: knowing(0, 3, 1, 2) for client in (6, 1, 4)}
    found = round_of(step, model)(step.initial(), same)
    assert len(set(found.measurements["accuracies"])) == 1
    assert found.measurements["client"] == NO_CLIENT


@pytest.mark.usefixtures("_here")
def test_what_is_judged_by_is_the_servers_state():
    """Not a constant of each round, and kept with the checkpoints."""
    step = chooses(model_of(linear), seed=6)
    state = step.initial()
    assert list(state.examples) == ["x", "y"]
    for name, column in examples().items():
        np.testing.assert_array_equal(state.examples[name], column)
    np.testing.assert_array_equal(state.seed, seeding.stateless_seed(6, seeding.SERVER))


# --- What is refused ------------------------------------------------------------------------------


def changed(**columns) -> dict[str, np.ndarray]:
    return {name: column for name, column in (examples() | columns).items() if column is not None}


@pytest.mark.parametrize(
    ("held", "message"),
    [
        (changed(y=None), r"as clients hold them, .*'y': \('int32', \(\)\)"),
        (changed(x=np.zeros((9, 3), np.float32)), r"found .*'x': \('float32', \(3,\)\)"),
        (changed(x=examples()["x"].astype(np.float64)), "found .*float64"),
        (changed(writer=np.zeros(9, np.int32)), "found .*writer"),
        (changed(y=np.zeros(7, np.int32)), r"equal length; found lengths \[7, 1203\]"),
        ({name: column[:0] for name, column in examples().items()}, r"one or more.*lengths \[0\]"),
    ],
)
def test_examples_of_another_form(held, message):
    with pytest.raises(ValueError, match=message):
        chooses(model_of(linear), held)


def test_no_passes():
    with pytest.raises(ValueError, match="1 or more passes, found 0"):
        chooses(model_of(linear), samples=0)


def test_models_that_the_server_cannot_call():
    model = architectures.make("small", ELEMENT, CLASSES, linear).model(local=["output"])
    with pytest.raises(ValueError, match="output/kernel, output/bias stay at the client"):
        chooses(model)
    asking = dataclasses.replace(model_of(linear), client_is_input=True)
    with pytest.raises(ValueError, match="predictions depend on it"):
        chooses(asking)
