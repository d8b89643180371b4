"""Several workers give the bits of one, whoever is lost on the way."""

import contextlib
import os
import signal
import socketserver
import threading
import time
from collections.abc import Iterator

import numpy as np
import pytest
import tensorflow as tf

from tff_het import methods, seeding
from tff_het.backend.names import tff
from tff_het.learning.local_training import LocalTraining
from tff_het.models import architectures, networks
from tff_het.simulation import feeding, remote, several_workers
from tff_het.simulation.shared_examples import SharedExamples
from tff_het.simulation.worker_process import WorkerProcess

pytestmark = pytest.mark.slow

CLIENTS, ROUNDS = 5, 2
DEADLINE = 8.0
SECONDS = 60.0  # For a round that has to be done again, on a busy machine.


class Workers:
    """Workers of this machine, as others would have them."""

    def __init__(self, count: int):
        self.processes = [WorkerProcess(1) for _ in range(count)]

    @property
    def addresses(self) -> list[str]:
        return [f"localhost:{process.port}" for process in self.processes]

    def at(self, address: str) -> WorkerProcess:
        return self.processes[self.addresses.index(address)]

    def start_again(self) -> None:
        """Those that have ended, at the same addresses."""
        for place, process in enumerate(self.processes):
            if process.has_ended(within_seconds=0):
                process.stop()
                self.processes[place] = WorkerProcess(1, port=process.port)

    def stop(self) -> None:
        for process in self.processes:
            process.stop()


@pytest.fixture(scope="module")
def workers() -> Iterator[Workers]:
    started = Workers(3)
    yield started
    started.stop()


class NoWorker(socketserver.ThreadingTCPServer):
    """Speaks HTTP/2, and has for every request that there is no such thing: 404."""

    allow_reuse_address = allow_reuse_port = daemon_threads = True

    def __init__(self, port: int = 0):
        super().__init__(("localhost", port), Http2)

    def __enter__(self):
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()


class Http2(socketserver.StreamRequestHandler):
    """RFC 9113, as far as a request without an answer's body goes."""

    HEADERS, SETTINGS, ACK, END_STREAM_AND_HEADERS = 1, 4, 1, 5
    STATUS_404 = b"\x8d"  # RFC 7541, its static table.

    def send(self, kind: int, flags: int, stream: bytes, payload: bytes = b"") -> None:
        header = len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream
        self.wfile.write(header + payload)

    def handle(self):
        with contextlib.suppress(ConnectionError):
            self.rfile.read(len(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))
            self.send(self.SETTINGS, 0, bytes(4))
            while header := self.rfile.read(9):
                self.rfile.read(int.from_bytes(header[:3], "big"))
                kind, flags, stream = header[3], header[4], header[5:]
                if kind == self.SETTINGS and flags != self.ACK:
                    self.send(self.SETTINGS, self.ACK, bytes(4))
                elif kind == self.HEADERS:
                    self.send(kind, self.END_STREAM_AND_HEADERS, stream, self.STATUS_404)


@pytest.fixture
def striking(monkeypatch):
    """(workers, signal) -> addresses: a worker gets the signal as its first part is under way.

    All that are asked for their results after it, if there is to be more than one.
    """

    def strike(workers: Workers, number: int, victims: int = 1) -> list[str]:
        struck: list[str] = []
        lock = threading.Lock()
        original = remote.Stub.compute

        def compute(stub, request):
            # Only remote ones: the one of this machine belongs to a context, not to an address.
            address = getattr(stub._why_gone.__self__, "address", None)
            with lock:
                hit = address is not None and address not in struck and len(struck) < victims
                if hit:
                    struck.append(address)
            if hit:
                os.kill(workers.at(address).pid, number)
            return original(stub, request)

        monkeypatch.setattr(remote.Stub, "compute", compute)
        return struck

    return strike


def inputs(process, population, state, states, round_num: int):
    """All clients but one, another one in each round."""
    return [
        feeding.ClientInput(
            client,
            seeding.stateless_seed(0, seeding.CLIENT_WORK, round_num, client),
            population[client].train,
            states.get(client) or process.init_state(client, 0, state),
        )
        for client in range(CLIENTS)
        if client != round_num
    ]


def train(process, population, rounds: int = ROUNDS):
    """Returns all that rounds leave: the server's state, metrics and clients' states."""
    state, states, metrics = process.initialize(), {}, []
    for round_num in range(rounds):
        clients = inputs(process, population, state, states, round_num)
        state, measured, kept = feeding.run_round(process, state, clients)
        states.update((int(one["client"]), one["state"]) for one in kept)
        metrics.append(measured)
    return state, metrics, states


def assert_same_bits(one, other) -> None:
    tf.nest.map_structure(np.testing.assert_array_equal, one, other)


@pytest.fixture(scope="module")
def opt_fl(make_population):
    """A method whose aggregator is no mean: it stacks updates in the clients' order."""
    test = make_population(3)[2].test
    element = {"x": (np.dtype(np.float32), (4,)), "y": (np.dtype(np.int32), ())}
    architecture = architectures.make("small", element, 3, networks.mlp([5]))
    training = LocalTraining(tff.learning.optimizers.build_sgdm(0.1), batch_size=4, epochs=1)
    return methods.build("opt_fl", architecture, training, seed=1, selection=test)


@pytest.fixture(scope="module")
def on_one_machine(worker, make_process, make_population):
    """HDAFL's rounds on one worker, which is what all others are compared with."""
    with tff.framework.get_context_stack().install(worker):
        return train(make_process("hdafl"), make_population(CLIENTS))


@pytest.mark.parametrize("method", ["fed_avg", "opt_fl"])
def test_same_bits_as_one_machine(worker, workers, make_process, make_population, request, method):
    made = request.getfixturevalue("opt_fl") if method == "opt_fl" else make_process(method)
    population = make_population(CLIENTS)
    with tff.framework.get_context_stack().install(worker):
        expected = train(made, population)
    with several_workers.use(workers.addresses):
        assert_same_bits(train(made, population), expected)


def test_same_bits_where_examples_are_read_from_files(
    workers, make_process, make_population, on_one_machine, tmp_path
):
    process, population = make_process("hdafl"), make_population(CLIENTS)
    with several_workers.use(workers.addresses[:2], shared_examples_dir=tmp_path):
        prepared = feeding.Prepared(process, population)
        path = prepared[0].path
        before = os.stat(path).st_mtime_ns
        assert_same_bits(train(process, population), on_one_machine)
        assert feeding.Prepared(process, population)[0].path == path
    names = sorted(file.name.split("-")[0] for file in tmp_path.iterdir())
    assert names == [str(client) for client in range(CLIENTS)]  # Each once, nothing unfinished.
    assert os.stat(path).st_mtime_ns == before


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_lost_in_mid_round(
    workers, striking, make_process, make_population, on_one_machine, number
):
    process, population = make_process("hdafl"), make_population(CLIENTS)
    workers.start_again()
    with several_workers.use(workers.addresses, deadline=DEADLINE):
        struck = striking(workers, number)
        start = time.monotonic()
        found = train(process, population)
        seconds = time.monotonic() - start
    (address,) = struck
    if number == signal.SIGSTOP:
        os.kill(workers.at(address).pid, signal.SIGCONT)
    assert_same_bits(found, on_one_machine)
    assert seconds < DEADLINE + SECONDS


def test_lost_and_something_else_answers_under_its_address(
    workers, make_process, make_population, on_one_machine, caplog
):
    process, population = make_process("hdafl"), make_population(CLIENTS)
    workers.start_again()
    with several_workers.use(workers.addresses, deadline=DEADLINE):
        assert_same_bits(train(process, population), on_one_machine)
        victim = workers.processes[0]
        os.kill(victim.pid, signal.SIGKILL)
        assert victim.has_ended(within_seconds=SECONDS)
        with NoWorker(victim.port):
            assert_same_bits(train(process, population), on_one_machine)
    assert f"localhost:{victim.port}: something that is no worker answers there" in caplog.text


def test_all_lost_is_an_error_and_those_that_come_back_go_on(
    workers, striking, make_process, make_population, on_one_machine
):
    process, population = make_process("hdafl"), make_population(CLIENTS)
    workers.start_again()
    addresses = workers.addresses[:2]
    with several_workers.use(addresses, deadline=DEADLINE):
        struck = striking(workers, signal.SIGKILL, victims=2)
        start = time.monotonic()
        with pytest.raises(several_workers.NoWorkerLeft) as error:
            train(process, population)
        assert time.monotonic() - start < 2 * DEADLINE + SECONDS
        assert sorted(struck) == sorted(addresses)
        for address in addresses:
            assert f"{address}: the connection broke" in str(error.value)
        workers.start_again()
        assert_same_bits(train(process, population), on_one_machine)
        # And one that was replaced between two rounds, which breaks no call.
        victim = workers.at(addresses[0])
        os.kill(victim.pid, signal.SIGKILL)
        assert victim.has_ended(within_seconds=SECONDS)
        workers.start_again()
        workers.at(addresses[0]).wait_until_serving()
        assert_same_bits(train(process, population), on_one_machine)


def test_error_of_a_client_is_nobody_lost(workers, caplog):
    scalars = tff.FederatedType(tff.StructType([("client", np.int32)]), tff.CLIENTS)

    @tff.tensorflow.computation(np.int32, tff.StructType([("client", np.int32)]))
    def positive(least, one):
        check = tf.debugging.assert_greater(one["client"], least, message="too small")
        with tf.control_dependencies([check]):
            return {"client": tf.identity(one["client"])}

    @tff.federated_computation(tff.FederatedType(np.int32, tff.SERVER), scalars)
    def at_clients(least, clients):
        return tff.federated_map(positive, (tff.federated_broadcast(least), clients))

    workers.start_again()
    with several_workers.use(workers.addresses[:2], deadline=SECONDS) as context:
        values = [{"client": np.int32(n)} for n in (7, 5, 6)]
        with pytest.raises(tf.errors.OpError, match="too small"):
            context.map_clients(at_clients, np.int32(5), values, [1, 1, 1])
        found = context.map_clients(at_clients, np.int32(4), values, [1, 5, 3])
        assert [int(one["client"]) for one in found] == [7, 5, 6]
    assert "Lost" not in caplog.text


def test_folder_that_a_worker_does_not_see_is_an_error(workers, tmp_path, monkeypatch):
    other = contextlib.nullcontext(str(tmp_path / "elsewhere"))
    monkeypatch.setattr(SharedExamples, "probe", lambda self: other)
    workers.start_again()
    address = workers.addresses[0]
    with (
        pytest.raises(FileNotFoundError, match=rf"{address} cannot read {other.enter_result}"),
        several_workers.use([address], shared_examples_dir=tmp_path),
    ):
        pass


def test_nobody_there_is_an_error():
    start = time.monotonic()
    with (
        pytest.raises(TimeoutError, match=r"No answer from localhost:9 within 0\.5 s"),
        several_workers.use(["localhost:9"], deadline=0.5),
    ):
        pass
    assert time.monotonic() - start < SECONDS


def test_something_else_there_is_an_error():
    with NoWorker() as server:
        address = f"localhost:{server.server_address[1]}"
        with (
            pytest.raises(TimeoutError, match=f"No answer from {address} within 1 s"),
            several_workers.use([address], deadline=1.0),
        ):
            pass


def test_arguments_are_checked(tmp_path):
    for addresses in (["host"], ["host:"], ["host:0"], ["host:65536"], ["a b:1"], ["http://a:1"]):
        with pytest.raises(ValueError, match="worker's address as host:port, found"):
            several_workers.use(addresses)
    with pytest.raises(ValueError, match="found none"):
        several_workers.use([])
    with pytest.raises(ValueError, match="different workers"):
        several_workers.use(["[::1]:1", "[::1]:1"])
    with pytest.raises(ValueError, match=r"above 0 and at most .*; found -1"):
        several_workers.use(["host:1"], deadline=-1)
    with pytest.raises(FileNotFoundError, match=r"shared examples at .*nowhere"):
        several_workers.use(["host:1"], shared_examples_dir=tmp_path / "nowhere")


def test_clients_are_dealt_by_size():
    workers = [object(), object()]
    parts = several_workers._split([0, 1, 2, 3], [5, 1, 4, 9], workers)
    assert parts == [(workers[0], [3, 1]), (workers[1], [0, 2])]
    assert several_workers._split([2], [5, 1, 4], workers) == [(workers[0], [2])]
