"""What holds for every method; a new one is one more row of `CASES`.

In this process; `backend/in_process/methods_test.py` compares each method with TFF's worker.
"""

import collections
import dataclasses

import numpy as np
import pytest
import tensorflow as tf
from cases import (
    CASES,
    CLASSES,
    FEATURES,
    SEED,
    UNITS,
    Case,
    assert_same_bits,
    build,
    by_client,
    make_client,
    make_clients,
    params,
    shapes,
)

from tff_het import kept, methods
from tff_het.attacks.observation import observe
from tff_het.backend.names import tff
from tff_het.evaluation import communication
from tff_het.evaluation.local_test import has_global_model
from tff_het.learning import example_files
from tff_het.learning.process import FederatedProcess

OURS = set(methods.names())  # Before a test of this process loads a plugin.


@pytest.fixture(scope="module", params=params(CASES))
def case(request) -> Case:
    return request.param


@pytest.fixture(scope="module")
def process(case) -> FederatedProcess:
    return build(case, SEED)


@pytest.fixture(scope="module")
def start(process):
    return process.initialize()


def field_names(value_type: tff.Type) -> list[str]:
    return tff.structure.name_list_with_nones(value_type)


def test_every_method_is_in_the_table():
    assert {case.method for case in CASES} == OURS


def test_types(case, process):
    """`next` takes and returns the same state; clients get back what they gave."""
    state_type, clients_type = process.next.type_signature.parameter
    assert process.initialize.type_signature.result.is_equivalent_to(state_type)
    assert state_type.placement is tff.SERVER
    assert clients_type.placement is tff.CLIENTS
    assert field_names(clients_type.member) == [
        "client",
        "seed",
        "examples",
        "state",
    ]
    result = process.next.type_signature.result
    assert field_names(result) == ["state", "metrics", "client_states"]
    assert result["state"].is_equivalent_to(state_type)
    assert result["metrics"].placement is tff.SERVER
    kept = result["client_states"]
    assert kept.placement is tff.CLIENTS
    assert kept.member["state"].is_equivalent_to(clients_type.member["state"])
    assert kept.member["client"] == tff.TensorType(np.int32)


def test_local_means_local(case, process):
    """No local variable is in what a client sends, by type."""
    sent = process.client_update.type_signature.result.member
    kept = sent["state"]["model"]
    assert sorted(shapes(kept)) == sorted(case.local)
    everything = collections.Counter(spec.shape for spec in process.model.specs)
    everything.subtract(case.local)
    everything.update(case.extra)
    assert sorted(shapes(sent["update"])) == sorted(everything.elements())
    assert shapes(sent["weight"]) == [()]
    assert set(shapes(sent["metrics"])) == {()}
    # Nor is anything of it, or any example, in what the server takes.
    upload = process.server_update.type_signature.parameter[1].member
    assert field_names(upload) == ["update", "weight", "metrics"]


def test_clients_keep_what_the_table_says(case, process, start):
    """Beside the number of rounds that they took part in."""
    state = process.init_state(0, SEED, start)
    assert bool(tf.nest.flatten((state.model, state.work))) == case.keeps_something


def test_next_moves_to_the_server_what_is_declared(case, process):
    """Compiled, it moves each tensor of update, weight and metrics, and no other one."""
    number, count = tff.TensorType(np.float32), tff.TensorType(np.int32)
    declared = collections.Counter(
        tff.TensorType(spec.dtype.as_numpy_dtype, spec.shape) for spec in process.model.specs
    )
    declared.subtract(tff.TensorType(np.float32, shape) for shape in case.local)
    declared[number] += declared.total() > 0  # The update's weight, if there is an update.
    declared.update(tff.TensorType(np.float32 if s else np.int32, s) for s in case.extra)
    declared[number] += case.counts
    declared[number] += 2 * len(case.training_metrics)  # Each a sum and a count.
    declared[count] += 1  # How many examples.
    types = [t.value_type for t in communication.transfers(process.next) if t.to_server]
    moved = collections.Counter(tff.structure.flatten(tff.to_type(types)))
    assert moved == declared, (moved - declared, declared - moved)


def test_next_is_client_update_then_server_update(process, start):
    """For three rounds, of differing clients, all bits are the same."""
    state, kept = start, {}
    for round_num, sizes in enumerate((((4, 9), (0, 5)), ((7, 3), (4, 9)), ((0, 5), (7, 3)))):
        clients = [
            make_client(process, state, client, n, round_num=round_num, kept=kept.get(client))
            for client, n in sizes
        ]
        sent = process.client_update(process.download(state), clients)
        uploads = [
            collections.OrderedDict((name, one[name]) for name in ("update", "weight", "metrics"))
            for one in sent
        ]
        stepped = process.server_update(state, uploads)
        output = process.next(state, clients)
        assert_same_bits(output.state, stepped["state"])
        assert_same_bits(output.metrics, stepped["metrics"])
        states = {
            index: result["state"] for index, result in by_client(output.client_states).items()
        }
        assert_same_bits(
            states, {index: result["state"] for index, result in by_client(sent).items()}
        )
        state, kept = output.state, kept | states
        assert state.round == round_num + 1


def test_training_changes_what_it_should(case, process, start):
    """Every variable moves where it lives, and only clients that took part count rounds."""
    clients = make_clients(process, start)
    output = process.next(start, clients)
    for old, new in zip(
        tf.nest.flatten(start.weights), tf.nest.flatten(output.state.weights), strict=True
    ):
        assert not np.array_equal(old, new)
    assert_same_bits(output.state.initial_local, start.initial_local)
    results = by_client(output.client_states)
    assert set(results) == {4, 0, 7}
    for client in clients:
        state = results[int(client["client"])]["state"]
        assert state.rounds == 1
        for old, new in zip(
            tf.nest.flatten(client["state"].model), tf.nest.flatten(state.model), strict=True
        ):
            assert np.array_equal(old, new) == (old.shape in case.frozen)


@pytest.fixture(scope="module")
def later(case, process, start):
    """The state after a round, what its clients are given in the next, and what is seen of that."""
    if case.method == "fed_proto":
        with pytest.raises(ValueError, match="a change of the global variables"):
            observe(process, start, make_clients(process, start))
        pytest.skip("Its clients send features, no change: there is nothing to add to a model.")
    output = process.next(start, make_clients(process, start))
    results = by_client(output.client_states)
    clients = [
        make_client(process, output.state, client, n, round_num=1, kept=results[client]["state"])
        for client, n in ((4, 9), (7, 3))
    ]
    return output.state, clients, observe(process, output.state, clients)


def test_an_observer_sees_global_variables_alone(process, later):
    """By shape, and by value against what the client itself sends and keeps."""
    state, clients, seen = later
    rows = process.client_update(process.download(state), clients)
    wanted = [spec.shape for spec in process.model.specs if not spec.local]
    own = [np.asarray(v) for v in tf.nest.flatten([row["state"].model for row in rows])]
    for one, row in zip(seen.clients, rows, strict=True):
        observed = [*one.after.trainable, *one.after.non_trainable]
        assert sorted(value.shape for value in observed) == sorted(wanted)
        assert_same_bits(one.before, state.weights)
        change = tf.nest.map_structure(np.subtract, one.after, one.before)
        update = row["update"]
        sent = getattr(update, "change", update)
        for a, b in zip(tf.nest.flatten(change), tf.nest.flatten(sent), strict=True):
            np.testing.assert_allclose(a, b, atol=1e-6)
        assert one.weight == row["weight"]
        assert one.private is None
        # What is private has values of its own, none of which is there in the clear.
        everything = [np.asarray(v) for v in tf.nest.flatten(dataclasses.asdict(one))]
        assert not any(np.array_equal(a, b) for a in own for b in everything if a.shape == b.shape)


def test_an_observed_server_goes_on_as_in_a_round(process, later):
    state, clients, seen = later
    assert_same_bits(seen.new_weights, process.next(state, clients).state.weights)


def test_an_observer_has_to_ask_for_the_private_part(process, later):
    state, clients, _ = later
    seen = observe(process, state, clients, private=True)
    output = process.next(state, clients)
    assert [one.client for one in seen.clients] == [4, 7]
    for one, result in zip(seen.clients, output.client_states, strict=True):
        assert_same_bits(one.private, result["state"])


# Each with a model of its own or without, the last of them refuses.
@pytest.mark.parametrize("method", ["fed_avg", "ditto", "p_fed_me", "apfl", "fed_ala", "ifca"])
def test_clients_predict_with_the_statistics_that_they_keep(method):
    case = next(case for case in CASES if case.method == method)
    case = dataclasses.replace(case, normalized=True)
    if method == "ifca":
        with pytest.raises(ValueError, match="ifca takes no local_statistics"):
            build(case, SEED, local_statistics=True)
        return
    process = build(case, SEED, local_statistics=True)
    start = process.initialize()
    (client, *_) = clients = make_clients(process, start)
    output = process.next(start, clients)
    kept = by_client(output.client_states)[int(client["client"])]["state"]
    examples = client["examples"]
    weights, own = process.adapt(output.state, kept, examples, client=int(client["client"]))
    found, initial = own.model.non_trainable, start.initial_local
    assert len(found) == 2  # Mean and variance, neither of which is as it was.
    assert_same_bits(found, kept.model.non_trainable)
    assert not any(np.array_equal(*pair) for pair in zip(found, initial.non_trainable, strict=True))
    now, before = (
        process.predict(weights, state, examples)["logits"]
        for state in (own, own._replace(model=initial))
    )
    assert not np.allclose(now, before, rtol=1e-3)


def test_first_states(process, start):
    first, again, other = (process.init_state(client, SEED, start) for client in (3, 3, 5))
    assert_same_bits(first, again)
    assert first.rounds == other.rounds == 0
    expected = process.next.type_signature.parameter[1].member["state"]
    assert [tuple(np.shape(v)) for v in tf.nest.flatten(first)] == shapes(expected)


def test_initial_values_follow_the_seed(process, start):
    assert_same_bits(process.initialize(), start)


def test_another_seed_shares_all_but_the_initial_values(case, process, start):
    other = build(case, SEED + 1)
    assert other.next is process.next
    pairs = zip(tf.nest.flatten(start), tf.nest.flatten(other.initialize()), strict=True)
    assert not all(np.array_equal(a, b) for a, b in pairs)


# With variables drawn at each client, masks drawn in a round, and clusters of different starts.
@pytest.mark.slow
@pytest.mark.parametrize("name", ["fed_recon", "waffle", "ifca"])
def test_what_another_seed_shares_gives_the_bits_of_its_own(name):
    case = next(case for case in CASES if case.method == name)

    def rounds(process):
        state = process.initialize()
        output = process.next(state, make_clients(process, state))
        clients = make_clients(process, output.state, ((4, 9), (2, 3)), round_num=1)
        return process.next(output.state, clients)

    shared = build(case, SEED)
    rounds(shared)
    found = rounds(build(case, SEED + 1))
    kept.forget()
    alone = build(case, SEED + 1)
    assert alone.next is not shared.next
    assert_same_bits(rounds(alone), found)


def test_clients_do_not_see_each_other(process, start):
    """With the same weights from the server, a client's results are the same bits
    whoever else takes part, in whichever order, and whatever they keep."""
    clients = make_clients(process, start)
    download = process.download(start)
    sent = process.client_update(download, clients)
    assert [int(result["client"]) for result in sent] == [4, 0, 7]
    reversed_sent = process.client_update(download, clients[::-1])
    alone = process.client_update(download, clients[1:2])
    disturbed = [collections.OrderedDict(client) for client in clients]
    disturbed[0]["state"] = tf.nest.map_structure(
        lambda v: v + np.ones_like(v), clients[0]["state"]
    )
    beside = process.client_update(download, disturbed)
    for others in (reversed_sent, alone):
        for index, result in by_client(others).items():
            assert_same_bits(result, by_client(sent)[index])
    for index in (0, 7):
        assert_same_bits(by_client(beside)[index], by_client(sent)[index])
    moved = tf.nest.flatten(by_client(beside)[4]["state"])
    assert not all(
        np.array_equal(a, b)
        for a, b in zip(moved, tf.nest.flatten(by_client(sent)[4]["state"]), strict=True)
    )


def test_order_of_clients_hardly_matters_to_the_server(process, start):
    """Sums of floats in another order: equal but for rounding."""
    clients = make_clients(process, start)
    forwards, backwards = process.next(start, clients), process.next(start, clients[::-1])
    for a, b in zip(
        tf.nest.flatten((forwards.state, forwards.metrics)),
        tf.nest.flatten((backwards.state, backwards.metrics)),
        strict=True,
    ):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)


def test_a_round_twice_gives_the_same_bits(process, start):
    clients = make_clients(process, start)
    assert_same_bits(process.next(start, clients), process.next(start, clients))


def test_clients_without_examples_contribute_nothing(process, start):
    clients = make_clients(process, start)
    empty = make_client(process, start, 2, 0)
    without, beside = process.next(start, clients), process.next(start, [*clients, empty])
    assert_same_bits(beside.state, without.state)
    assert_same_bits(beside.metrics["train"], without.metrics["train"])
    kept = by_client(beside.client_states)[2]["state"]
    assert_same_bits(kept.model, empty["state"].model)


# Examples of one kind, and with a pool of unlabelled ones among them.
@pytest.mark.slow
@pytest.mark.parametrize("name", ["hdafl", "waffle-acquisition"])
def test_examples_from_files(name, tmp_path):
    """Examples that are read inside of the computation give the same bits."""
    process = build(next(case for case in CASES if str(case) == name), SEED)
    start = process.initialize()
    clients = make_clients(process, start, ((4, 9), (0, 0), (7, 3)))
    by_path = []
    for client in clients:
        path = tmp_path / str(client["client"])
        parts = example_files.to_bytes(client["examples"], process.model.example_spec)
        path.write_bytes(b"".join(parts))
        by_path.append(collections.OrderedDict(client, examples=str(path)))
    assert_same_bits(process.reading_files.next(start, by_path), process.next(start, clients))
    assert process.reading_files is process.reading_files


def test_seeds_matter(process, start):
    """Another round's seed gives other batches and masks."""
    download = process.download(start)
    one, two = (
        process.client_update(download, make_clients(process, start, round_num=r)) for r in (0, 1)
    )
    for a, b in zip(one, two, strict=True):
        results = [(r["update"], r["state"].model) for r in (a, b)]
        flat = [np.concatenate([np.ravel(v) for v in tf.nest.flatten(r)]) for r in results]
        assert not np.array_equal(*flat)


def test_predictions_are_a_clients_own(case, process, start):
    """What is local decides: clients with different states predict differently, others do not."""
    clients = make_clients(process, start)
    output = process.next(start, clients)
    x = np.random.default_rng(5).normal(size=(6, FEATURES)).astype(np.float32)
    examples = {"x": x, "y": np.zeros(6, np.int32)}
    results = by_client(output.client_states)
    own = {int(client["client"]): client["examples"] for client in clients}
    one, two = (
        process.predict(
            *process.adapt(output.state, results[index]["state"], own[index], client=index),
            examples,
            client=index,
        )
        for index in (4, 0)
    )
    assert one["logits"].shape == (6, CLASSES)
    assert one["hidden"].shape == (6, UNITS)
    personal = bool(case.local) if case.personal is None else case.personal
    assert process.adapts == case.adapts
    assert np.array_equal(one["logits"], two["logits"]) != (personal or case.adapts)
    assert has_global_model(process) != personal


def test_as_learning_process(case, process, start):
    if case.local or case.acquisition or case.keeps:
        kept = "model <trainable=<float32" if case.local else "work <"
        with pytest.raises(ValueError, match=f"cannot carry client state.*{kept}"):
            process.as_learning_process()
        return
    learning = process.as_learning_process()
    assert isinstance(learning, tff.learning.templates.LearningProcess)
    clients = make_clients(process, start)
    stateless = [
        collections.OrderedDict((k, v) for k, v in client.items() if k != "state")
        for client in clients
    ]
    state = learning.initialize()
    output = learning.next(state, stateless)
    expected = process.next(start, clients)
    assert_same_bits(output.state, expected.state)
    assert_same_bits(output.metrics, expected.metrics)
    weights = learning.get_model_weights(output.state)
    assert isinstance(weights, tff.learning.models.ModelWeights)
    assert_same_bits(weights.trainable, expected.state.weights.trainable)
    doubled = tf.nest.map_structure(lambda v: 2 * v, weights)
    loaded = learning.set_model_weights(output.state, doubled)
    assert_same_bits(learning.get_model_weights(loaded).trainable, doubled.trainable)
    assert learning.next(loaded, stateless).state.round == 2


def test_with_weights(process, start):
    values = [
        np.random.default_rng(0).normal(size=spec.shape).astype(np.float32)
        for spec in process.model.specs
    ]
    loaded = process.with_weights(start, values)
    again = process.model.join(process.model.split(values))
    assert_same_bits(again, values)
    client = process.init_state(0, SEED, loaded)
    found = tf.nest.flatten((loaded.weights, client.model))
    assert sorted(v.tobytes() for v in found) == sorted(v.tobytes() for v in values)
    with pytest.raises(ValueError, match=r"has shape .*, found \(1,\)"):
        process.with_weights(start, [np.ones(1), *values[1:]])


def test_unknown_options(case):
    with pytest.raises(ValueError, match=f"'{case.method}' has no option colour; it has"):
        methods.build(case.method, None, None, seed=SEED, colour="red")


def test_unknown_method():
    with pytest.raises(ValueError, match="no method 'magic'; there are: fed_avg, "):
        methods.build("magic", None, None, seed=SEED)
