"""Training from another run's model: values go by path, and clients keep what is their own."""

import csv
import dataclasses

import numpy as np
import pytest

from tff_het import methods
from tff_het.backend.names import tff
from tff_het.clients import Population
from tff_het.learning.local_training import LocalTraining
from tff_het.models import architectures, networks
from tff_het.simulation import cohorts, loop
from tff_het.simulation import start as starts
from tff_het.simulation.loop import Settings
from tff_het.simulation.start import Start

pytestmark = pytest.mark.usefixtures("each_runtime")

NUM_CLIENTS, SEED = 4, 3
LOCAL = ["dense_1/kernel", "dense_1/bias"]  # Of lg_fedavg on the small network.


@pytest.fixture(scope="module")
def population(make_population) -> Population:
    return make_population(NUM_CLIENTS)


@pytest.fixture(scope="module")
def fed_avg(each_runtime, make_process, population):
    """Two rounds of FedAvg."""
    return loop.train(
        make_process("fed_avg"),
        population,
        cohorts.uniform(NUM_CLIENTS, 2, SEED),
        Settings(rounds=2, seed=SEED),
    )


@pytest.fixture(scope="module")
def begun(each_runtime, make_process, fed_avg) -> Start:
    """Where FedAvg has left off."""
    return starts.after(make_process("fed_avg"), fed_avg.state)


@pytest.fixture
def train(make_process, population):
    def run(start, schedule, *, rounds=1, folder=None, method="lg_fedavg", **options):
        arguments = {n: options.pop(n) for n in ("config", "on_round") if n in options}
        return loop.train(
            make_process(method) if isinstance(method, str) else method,
            population,
            schedule,
            Settings(rounds=rounds, seed=SEED, **options),
            start=start,
            folder=folder,
            **arguments,
        )

    return run


def logits(process, state, client_state, client) -> np.ndarray:
    return process.predict(state.weights, client_state, client.test)["logits"]


def own_values(process, client_state) -> dict[str, np.ndarray]:
    paths = [spec.path for spec in process.model.specs if spec.local]
    return dict(zip(paths, client_state.model.trainable, strict=True))


def assert_same(found, wanted) -> None:
    assert list(found) == list(wanted)
    for path in found:
        np.testing.assert_array_equal(found[path], wanted[path], err_msg=path)


def test_rounds_go_on(make_process, population, train, begun):
    """Two rounds and two more are four: the same clients, orders of examples and weights."""
    schedule = cohorts.uniform(NUM_CLIENTS, 2, SEED)
    whole = train(None, schedule, rounds=4, method="fed_avg")
    rest = train(begun, schedule, rounds=2, method="fed_avg")
    assert rest.rounds == 2 and int(rest.state.round) == int(whole.state.round) == 4
    process = make_process("fed_avg")
    assert_same(starts.after(process, rest.state).values, starts.after(process, whole.state).values)
    assert [row["train_loss"] for row in rest.rows] == [row["train_loss"] for row in whole.rows[2:]]


# --- From a model without a local part --------------------------------------------------------


@pytest.mark.parametrize("method", ["lg_fedavg", "hdafl", "local_only", "fed_prox"])
def test_clients_predict_what_the_first_model_does(
    make_process, population, fed_avg, begun, method
):
    """Whatever is local: before they train, all bits of all clients are FedAvg's."""
    first, process = make_process("fed_avg"), make_process(method)
    initial = process.initialize()
    state = begun.server_state(process, initial)
    for index, client in enumerate(population):
        new = process.init_state(index, SEED, state)
        wanted = logits(first, fed_avg.state, first.init_state(index, SEED, fed_avg.state), client)
        np.testing.assert_array_equal(logits(process, state, new, client), wanted)
        untrained = logits(process, initial, process.init_state(index, SEED, initial), client)
        assert not np.array_equal(untrained, wanted)


def test_clients_that_do_not_train_keep_the_local_part(make_process, train, begun):
    process = make_process("lg_fedavg")
    result = train(begun, cohorts.always(1), rounds=2)
    server = starts.after(process, result.state).values
    for client in range(NUM_CLIENTS):
        state = result.client_states.get(client, result.state)
        found = own_values(process, state)
        assert list(found) == LOCAL
        if client == 1:
            assert not np.array_equal(found[LOCAL[0]], begun.values[LOCAL[0]])
        else:
            assert_same(found, {path: begun.values[path] for path in LOCAL})
        assert state.rounds == 2 * (client == 1)
    # The global part has moved; what clients start from has not.
    assert not np.array_equal(server["output/kernel"], begun.values["output/kernel"])
    assert_same({p: server[p] for p in LOCAL}, {p: begun.values[p] for p in LOCAL})


def test_what_is_new_has_the_values_of_the_method(each_runtime, begun):
    """An auxiliary network, of which the first model knows nothing."""
    element = {"x": (np.dtype(np.float32), (4,)), "y": (np.dtype(np.int32), ())}
    network = architectures.make("small", element, 3, networks.mlp([5]))
    sgd = tff.learning.optimizers.build_sgdm(0.1)
    training = LocalTraining(sgd, batch_size=4, epochs=1)
    process = methods.build("lg_fedavg", network, training, seed=1, local_loss="supervised")
    initial = process.initialize()
    values = starts.after(process, begun.server_state(process, initial)).values
    own = starts.after(process, initial).values
    auxiliary = ["auxiliary/kernel", "auxiliary/bias"]
    assert set(values) == {*begun.values, *auxiliary}
    assert_same({path: values[path] for path in begun.values}, begun.values)
    assert_same({path: values[path] for path in auxiliary}, {p: own[p] for p in auxiliary})


# --- Clients with values of their own ---------------------------------------------------------


@pytest.fixture
def personal(make_process, train, begun):
    """LG-FedAvg after two rounds of clients 0 and 2, which are to keep what they have."""
    result = train(begun, lambda round_num: [0, 2], rounds=2)
    return starts.after(make_process("lg_fedavg"), result.state, result.client_states, [0, 2])


def test_clients_keep_their_own_where_it_is_local(make_process, train, personal):
    process = make_process("lg_fedavg")
    assert set(personal.clients) == {0, 2}
    result = train(personal, cohorts.always(1))
    for client in (0, 2, 3):
        state = result.client_states.get(client, result.state)
        wanted = personal.clients.get(client, personal.values)
        assert_same(own_values(process, state), {path: wanted[path] for path in LOCAL})
        assert state.rounds == int(client != 3)  # 0 would say that it has nothing of its own.
    wide = {path: value.astype(np.float64) for path, value in personal.clients[2].items()}
    again = train(dataclasses.replace(personal, clients={2: wide}), cohorts.always(1))
    state = again.client_states.get(2, again.state)
    assert {v.dtype for v in state.model.trainable} == {np.dtype(np.float32)}
    assert not np.array_equal(personal.clients[0][LOCAL[0]], personal.clients[2][LOCAL[0]])
    assert not np.array_equal(personal.clients[0][LOCAL[0]], personal.values[LOCAL[0]])


def test_they_train_on_from_it(make_process, train, personal):
    """The same round, but for where client 0 starts."""
    process = make_process("lg_fedavg")
    shared = dataclasses.replace(personal, clients={})
    ends = [
        own_values(process, one.client_states.get(0, one.state))
        for one in (train(s, cohorts.always(0)) for s in (personal, shared))
    ]
    assert not np.array_equal(ends[0][LOCAL[0]], ends[1][LOCAL[0]])


def test_where_nothing_is_local_it_has_no_meaning(train, personal):
    """FedAvg goes on from the server's values alone."""
    shared = dataclasses.replace(personal, clients={})
    one, two = (train(s, cohorts.always(0), method="fed_avg").rows[0] for s in (personal, shared))
    assert one == two


class BrokenError(Exception):
    pass


@pytest.mark.parametrize(
    "options",
    [{}, {"checkpoint_every": 3}, {"states_in_memory": False}],
    ids=["memory", "every-3", "disk"],
)
def test_a_run_that_goes_on_does_not_start_again(train, make_process, personal, tmp_path, options):
    """Stopped after each round, it ends with the same bytes, clients' own states included."""

    def broken(row, seconds):
        raise BrokenError

    def schedule(round_num):
        return [round_num % 2, 3 - round_num % 2]

    whole = train(personal, schedule, rounds=3, folder=tmp_path / "whole")
    whole.client_states.close()
    for _ in range(2):
        with pytest.raises(BrokenError):
            train(personal, schedule, rounds=3, folder=tmp_path / "on", on_round=broken, **options)
        if options.get("checkpoint_every"):  # Keeps nothing of a first round.
            break
    result = train(personal, schedule, rounds=3, folder=tmp_path / "on", **options)
    result.client_states.close()
    for name in ("metrics.csv", "clients.csv"):
        assert (tmp_path / "on" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    process = make_process("lg_fedavg")
    assert_same(
        starts.after(process, result.state).values, starts.after(process, whole.state).values
    )
    with (tmp_path / "on" / "clients.csv").open() as file:
        first = [row["rounds_trained"] for row in csv.DictReader(file) if row["round"] == "1"]
    assert first == ["2", "0", "1", "1"]


# --- Refusals ---------------------------------------------------------------------------------


def test_a_global_variable_that_is_missing(make_process, train, begun):
    values = {path: v for path, v in begun.values.items() if path != "output/bias"}
    with pytest.raises(ValueError, match=r"has no output/bias; it has: dense_1/kernel, dense_1/bi"):
        train(Start(values), cohorts.always(0))


@pytest.mark.parametrize("path", ["output/kernel", "dense_1/kernel"])
def test_a_variable_of_another_shape(train, begun, path):
    values = {**begun.values, path: np.zeros((2, 2), np.float32)}
    with pytest.raises(ValueError, match=rf"Variable {path} has shape .* from has \(2, 2\)"):
        train(Start(values), cohorts.always(0))


def test_a_clients_variable_of_another_shape(train, begun):
    clients = {3: {"dense_1/bias": np.zeros(9, np.float32)}}
    with pytest.raises(ValueError, match=r"Client 3: variable dense_1/bias .* \(5,\), found \(9,"):
        train(Start(begun.values, clients), cohorts.always(0))


@pytest.mark.parametrize("client", [-1, 99])
def test_a_client_that_is_not_in_the_population(train, begun, client):
    own = {client: {"dense_1/bias": begun.values["dense_1/bias"]}}
    with pytest.raises(ValueError, match=rf"client {client}; the population has clients 0 to \d+"):
        train(Start(begun.values, own), cohorts.always(0))


# --- Fingerprint and file ---------------------------------------------------------------------


def test_fingerprint_follows_all_values(begun):
    changed = {**begun.values, "output/bias": begun.values["output/bias"] + np.float32(1)}
    own = {"dense_1/bias": begun.values["dense_1/bias"]}
    turned = dict(reversed(begun.values.items()))
    rounds = begun.rounds
    assert Start(turned, rounds=rounds).fingerprint() == begun.fingerprint()
    others = [
        begun,
        Start(begun.values, rounds=rounds + 1),
        Start(changed, rounds=rounds),
        Start({**begun.values, "more": np.zeros(1)}, rounds=rounds),
        Start(begun.values, {0: own}, rounds),
        Start(begun.values, {1: own}, rounds),
    ]
    assert len({one.fingerprint() for one in others}) == len(others)


def test_file_gives_back_the_servers_values(begun, personal, tmp_path):
    for start in (begun, personal):
        starts.write(tmp_path, start)
        found = starts.read(tmp_path)
        assert_same(found.values, start.values)
        assert found.clients == {} and found.rounds == start.rounds > 0
        assert [path.name for path in tmp_path.iterdir()] == ["weights.npz"]
    first = (tmp_path / "weights.npz").read_bytes()
    starts.write(tmp_path, personal)
    assert (tmp_path / "weights.npz").read_bytes() == first


def test_folder_without_a_finished_run(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no .*weights\.npz: a run .* has to be finished"):
        starts.read(tmp_path)


@pytest.mark.parametrize("damage", ["truncated", "overwritten", "flipped", "empty"])
def test_damaged_file(begun, tmp_path, damage):
    starts.write(tmp_path, begun)
    path = tmp_path / "weights.npz"
    data = path.read_bytes()
    place = data.index(begun.values["dense_1/kernel"].tobytes())
    path.write_bytes(
        {
            "truncated": data[: len(data) // 2],
            "overwritten": b"?" * len(data),
            "flipped": data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :],
            "empty": b"",
        }[damage]
    )
    with pytest.raises(ValueError, match=r"weights\.npz is damaged .*Make the run again"):
        starts.read(tmp_path)
