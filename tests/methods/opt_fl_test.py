"""OptFL and MixFL: whole rounds, against what the clients send and AveFL makes of it."""

import collections

import numpy as np
import pytest
import tensorflow as tf

from tff_het import methods, seeding
from tff_het.backend.names import tff
from tff_het.evaluation import communication
from tff_het.learning.local_training import LocalTraining
from tff_het.models import architectures, networks
from tff_het.simulation import feeding

CLASSES, FEATURES, SEED = 4, 8, 3
ELEMENT = {"x": (np.dtype(np.float32), (FEATURES,)), "y": (np.dtype(np.int32), ())}
# Client -> the classes that it has: nobody has all, one has more than the others.
CLASSES_OF = {9: [0, 1], 3: [1, 2, 3], 6: [3]}


def draw(classes, n: int, key: int) -> collections.OrderedDict:
    rng = np.random.default_rng(key)
    centres = np.random.default_rng(77).normal(0, 1.5, (CLASSES, FEATURES))
    y = rng.choice(classes, n)
    x = centres[y] + rng.normal(size=(n, FEATURES))
    return collections.OrderedDict(x=x.astype(np.float32), y=y.astype(np.int32))


SELECTION = dict(draw(range(CLASSES), 601, 100))


def build(method: str, seed: int = SEED, **options):
    architecture = architectures.make("small", ELEMENT, CLASSES, networks.mlp([16], 0.3))
    optimizer = tff.learning.optimizers.build_sgdm(0.1)
    training = LocalTraining(optimizer, batch_size=8, epochs=2)
    if method != "ave_fl":
        options = {"selection": SELECTION, "ensemble_dropout_samples": 4, **options}
    return methods.build(method, architecture, training, seed=seed, **options)


def clients_of(process, state, round_num: int = 0, order=tuple(CLASSES_OF)):
    return [
        feeding.ClientInput(
            client,
            seeding.stateless_seed(SEED, seeding.CLIENT_WORK, round_num, client),
            draw(CLASSES_OF[client], 40, 10 * round_num + client),
            process.init_state(client, SEED, state),
        )
        for client in order
    ]


def run(process, rounds: int = 4, order=tuple(CLASSES_OF)):
    """States, the first among them, and what the server measured in each round."""
    states, measured = [process.initialize()], []
    for round_num in range(rounds):
        clients = clients_of(process, states[-1], round_num, order)
        output = feeding.run_round(process, states[-1], clients)
        states.append(output.state)
        measured.append(output.metrics["server_step"])
    return states, measured


def sent_by_client(process, state, round_num: int):
    clients = [
        collections.OrderedDict(one._asdict()) for one in clients_of(process, state, round_num)
    ]
    sent = process.client_update(process.download(state), clients)
    return {int(one["client"]): one["update"].change for one in sent}


@pytest.fixture(scope="module", params=["opt_fl", "mix_fl"])
def method(request) -> str:
    return request.param


@pytest.fixture(scope="module")
def process(method):
    return build(method)


def test_the_server_goes_on_with_what_it_says_that_it_took(method, process):
    """A client's own model, or AveFL's of the same round."""
    states, measured = run(process)
    average = build("ave_fl")
    for round_num, (before, after, found) in enumerate(
        zip(states, states[1:], measured, strict=False)
    ):
        changes = sent_by_client(process, before, round_num)
        assert found["accuracy"] == max(found["accuracies"])
        taken = int(found["client"])
        if taken == -1:
            assert method == "mix_fl"
            state = average.with_weights(average.initialize(), before.weights)
            clients = clients_of(average, state, round_num)
            wanted = feeding.run_round(average, state, clients).state.weights.trainable
        else:
            change = changes[taken].trainable
            wanted = [w + c for w, c in zip(before.weights.trainable, change, strict=True)]
        for one, other in zip(after.weights.trainable, wanted, strict=True):
            np.testing.assert_allclose(one, other, atol=1e-6)
    takers = {int(found["client"]) for found in measured}
    assert takers & {3, -1}  # Who has three of four classes, or all together.


def test_a_seed_gives_the_same_bits_in_any_order(process, method):
    (*_, last), measured = run(process)
    (*_, again), measured_again = run(build(method), order=(6, 9, 3))
    tf.nest.map_structure(np.testing.assert_array_equal, last.weights, again.weights)
    for one, other in zip(measured, measured_again, strict=True):
        assert list(one["accuracies"]) == list(other["accuracies"])
    # And the masks follow from it.
    other = build(method, seed=SEED + 1)
    state = other.with_weights(other.initialize(), process.initialize().weights)
    output = feeding.run_round(other, state, clients_of(other, state))
    assert list(output.metrics["server_step"]["accuracies"]) != list(measured[0]["accuracies"])


def test_examples_stay_at_the_server(process):
    """A client sends its update and whose it is, 4 bytes; it is sent the model alone."""
    found = communication.ledger(process)
    other = communication.ledger(build("ave_fl"))
    assert found.bytes_up == other.bytes_up + 4
    assert found.bytes_down == other.bytes_down == 4 * found.parameters_total


def test_what_is_refused(method):
    with pytest.raises(ValueError, match="one or more examples to judge by"):
        build(method, selection={name: column[:0] for name, column in SELECTION.items()})
    with pytest.raises(ValueError, match="as clients hold them"):
        build(method, selection={"y": SELECTION["y"]})
    with pytest.raises(ValueError, match="expected a whole number from 1"):
        build(method, ensemble_dropout_samples=0)
