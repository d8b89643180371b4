"""A Ray cluster gives the bytes of one machine, though nodes are lost, and leaves nothing."""

import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time
import types
from unittest import mock

import numpy as np
import pytest
import tensorflow as tf

from experiments import report, train
from experiments.hdafl import table5
from experiments.run import one
from experiments.run.config import RunConfig
from experiments.study import program
from tff_het.backend.names import tff
from tff_het.simulation import feeding, ray_runtime, runtime

ROOT = pathlib.Path(__file__).parents[2]
RUN = {"dataset": "digits", "num_clients": "5", "clients_per_round": "4", "rounds": "3"}
NOISE = {"aggregator": "dp", "noise_multiplier": "0.5", "update_clip_norm": "0.3"}
METHODS: dict[str, dict[str, str]] = {"hdafl": {}, "scaffold": {}, "waffle": {}, "fed_avg": NOISE}
FILES = ("metrics.csv", "clients.csv", "weights.npz")
DEADLINE, SECONDS = 12.0, 120.0


@pytest.mark.parametrize(
    ("address", "expected"), [("localhost:9", ConnectionError), ("localhost", ValueError)]
)
def test_address_at_which_no_cluster_is_is_refused(monkeypatch, address, expected):
    pytest.importorskip("ray", reason="the extra ray is not installed")
    monkeypatch.setenv("RAY_ADDRESS", address)
    with pytest.raises(expected, match=f"RAY_ADDRESS.*{address}"), runtime.use("ray"):
        pass


@pytest.fixture(scope="module")
def cluster():
    """A head that trains nothing, to which programs connect, and two nodes of one core."""
    ray = pytest.importorskip("ray", reason="the extra ray is not installed")
    from ray.cluster_utils import Cluster

    # At Ray's own 15 they would hardly run beside other tests.
    os.environ["RAY_worker_niceness"] = "0"  # noqa: SIM112
    head = {"num_cpus": 0, "include_dashboard": False}
    made = Cluster(initialize_head=True, connect=True, head_node_args=head)
    mend(made)
    yield made
    ray.shutdown()
    for node in list(made.worker_nodes):
        made.remove_node(node, allow_graceful=False)
    made.shutdown()
    del os.environ["RAY_worker_niceness"]  # noqa: SIM112


def raylet(node) -> subprocess.Popen:
    return node.all_processes["raylet"][0].process


def mend(cluster) -> None:
    """Replaces what was killed."""
    for node in list(cluster.worker_nodes):
        if raylet(node).poll() is not None:
            cluster.remove_node(node, allow_graceful=False)
    while len(cluster.worker_nodes) < 2:
        cluster.add_node(num_cpus=1)


def trained(folder, method: str) -> dict[str, bytes]:
    """Trains in the runtime that is installed; returns what the run leaves."""
    config = RunConfig.of(method=method, **RUN, **METHODS[method])
    one.run(config, folder / method).close()
    return {name: (folder / method / name).read_bytes() for name in FILES}


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    """What each method's run leaves in this process."""
    folder = tmp_path_factory.mktemp("here")
    with runtime.use("in_process", clients_in_parallel=2):
        return {method: trained(folder, method) for method in METHODS}


@pytest.fixture
def strike(cluster, monkeypatch):
    """(how many, "actor" or "raylet", signal) -> nodes, which get it amid the second round."""
    raylets = {node.node_id[:8]: raylet(node) for node in cluster.worker_nodes}
    struck: dict[str, int] = {}
    calls_seen: list[int] = []
    original = ray_runtime.RayContext._ended

    def begin(count: int, what: str, number: int) -> dict[str, int]:
        def ended(context, calls):
            calls_seen.append(len(calls))
            for node, _ in calls.values() if len(calls_seen) > 1 else ():
                if len(struck) < count and node.name not in struck:
                    pid = raylets[node.name[-9:-1]].pid
                    if what == "actor":
                        ask = node.actor.__ray_call__.remote(lambda host: os.getpid())
                        pid = context._ray.get(ask)
                    struck[node.name] = pid
                    os.kill(pid, number)
            return original(context, calls)

        monkeypatch.setattr(ray_runtime.RayContext, "_ended", ended)
        return struck

    yield begin
    for name, pid in struck.items():
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        if raylets[name[-9:-1]].pid == pid:
            raylets[name[-9:-1]].wait()
    mend(cluster)


@pytest.mark.slow
def test_table_has_the_same_bytes_though_a_run_and_a_node_are_lost(cluster, tmp_path, tools):
    struck: list[int] = []

    def strike():
        tools.wait_for(lambda: list((tmp_path / "ray").rglob("claim.json")), 5 * SECONDS)
        path = next((tmp_path / "ray").rglob("claim.json"))
        struck.append(json.loads(path.read_text())["pid"])
        struck.append(raylet(next(iter(cluster.worker_nodes))).pid)
        for pid in struck:
            os.kill(pid, signal.SIGKILL)

    striking = threading.Thread(target=strike)
    striking.start()
    tables = []
    for folder, settings in (("here", {"jobs": 1}), ("ray", {"engine": "ray"})):
        making = program.Making(output_dir=str(tmp_path / folder), **settings)
        assert program.make_runs(table5.EXPERIMENT, "smoke", making) == 0
        page = report.write([table5.EXPERIMENT], tmp_path / folder).parent
        tables.append({path.name: path.read_bytes() for path in page.glob("*.csv")})
    striking.join()
    assert len(struck) == 2
    assert tables[0] and tables[0] == tables[1]
    assert not list(tmp_path.rglob("claim.json"))
    mend(cluster)


@pytest.mark.slow
def test_program_that_loses_all_nodes_goes_on(cluster, here, tmp_path, strike, capfd):
    flags = [f"--{name}={value}" for name, value in RUN.items()]
    flags += ["--method=hdafl", "--runtime=ray", f"--ray_deadline={DEADLINE:g}"]
    flags += [f"--output_dir={tmp_path}"]
    struck = strike(2, "raylet", signal.SIGKILL)
    with pytest.raises(SystemExit) as ended:
        train.main(flags)
    assert ended.value.code == 1
    last = capfd.readouterr().err.splitlines()[-1]
    assert last.startswith("error: No node is left (")
    assert len(struck) == 2 and all(f"{name}: " in last for name in struck)
    assert (tmp_path / "hdafl" / "metrics.csv").read_text().count("\n") == 2
    cluster.add_node(num_cpus=1)
    assert train.main(flags) == 0
    assert {name: (tmp_path / "hdafl" / name).read_bytes() for name in FILES} == here["hdafl"]


@pytest.fixture(scope="module")
def context(cluster, here):
    """Trains on the nodes of the cluster."""
    with runtime.use("ray", deadline=DEADLINE) as opened:
        yield opened


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_same_bytes_as_in_this_process(context, here, tmp_path, method):
    assert len(context.serving(SECONDS)) == 2
    assert trained(tmp_path, method) == here[method]


@pytest.mark.slow
def test_error_of_a_client_is_nobody_lost(context):
    scalar, column = tff.TensorType(np.int32), tff.TensorType(np.float32, [None])
    client = {"client": scalar, "seed": tff.TensorType(np.int32, [2])}
    client |= {"examples": tff.to_type({"x": column}), "state": scalar}

    @tff.tensorflow.computation(scalar, tff.to_type(client))
    def above(least, one):
        check = tf.debugging.assert_greater(one["client"], least, message="too small")
        with tf.control_dependencies([check]):
            names = ("client", "update", "weight", "metrics", "state")
            return {name: tf.identity(one["client"]) for name in names}

    @tff.federated_computation(
        tff.FederatedType(scalar, tff.SERVER), tff.FederatedType(tff.to_type(client), tff.CLIENTS)
    )
    def at_clients(least, clients):
        return tff.federated_map(above, (tff.federated_broadcast(least), clients))

    process = types.SimpleNamespace(
        client_update=at_clients,
        download=lambda state: state,
        model=types.SimpleNamespace(example_spec={"x": tf.TensorSpec([None], tf.float32)}),
        server_update=lambda state, sent: {"state": [s["update"] for s in sent], "metrics": None},
    )
    clients = [
        feeding.ClientInput(n, np.zeros(2, np.int32), {"x": np.zeros(n, np.float32)}, np.int32(0))
        for n in (7, 5, 6)
    ]
    context.serving(SECONDS)
    context._lost.clear()  # What tests before this one have lost.
    with pytest.raises(tf.errors.OpError, match=r"client=5.*too small"):
        context.run_round(process, np.int32(5), clients)
    assert context.run_round(process, np.int32(4), clients).state == [7, 5, 6]
    assert not context._lost


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "what", "number"),
    [
        ("hdafl", "actor", signal.SIGKILL),
        ("scaffold", "actor", signal.SIGSTOP),
        ("waffle", "raylet", signal.SIGKILL),
        ("scaffold", "raylet", signal.SIGSTOP),
    ],
)
def test_lost_in_mid_round(context, here, tmp_path, strike, method, what, number):
    context.serving(SECONDS)
    context._lost.clear()
    struck = strike(1, what, number)
    start = time.monotonic()
    assert trained(tmp_path, method) == here[method]
    assert time.monotonic() - start < DEADLINE + SECONDS
    assert len(struck) == 1 and list(context._lost) == list(struck)


PROGRAM = """
import time
from tff_het.simulation import ray_cluster
with ray_cluster.connected() as ray:
    ray.get(ray.remote(lambda: 0).remote())
    print("open", flush=True)
    {then}
"""


@pytest.mark.slow
def test_no_process_is_left(tools):
    pytest.importorskip("ray", reason="the extra ray is not installed")
    mark = f"ray-program-{os.getpid()}-"
    started = {}
    for number in (0, signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        then = "time.sleep(600)" if number else "raise KeyError"
        started[number] = subprocess.Popen(
            [sys.executable, "-c", PROGRAM.format(then=then)],
            env={**os.environ, "MARK": f"{mark}{number}.", "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert started[number].stdout.readline() == "open\n"
    for number, popen in started.items():
        if number:
            assert len(tools.processes_with(f"{mark}{number}.")) > 3
            popen.send_signal(number)
        popen.communicate(timeout=SECONDS)
    tools.wait_for(lambda: not tools.processes_with(mark), SECONDS)


def test_without_ray_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ValueError, match=r"uv sync --extra ray"), runtime.use("ray"):
        pass


def test_deadline_is_checked():
    with pytest.raises(ValueError, match=r"found -1"), runtime.use("ray", deadline=-1):
        pass


def test_clients_are_split_by_size():
    small, large = (ray_runtime._Node("", threads, None, None) for threads in (1, 3))
    parts = ray_runtime._split([0, 1, 2, 3], [5, 1, 4, 9], [small, small])
    assert [part for _, part in parts] == [[3, 1], [0, 2]]
    assert ray_runtime._split([2], [5, 1, 4], [small, small]) == [(small, [2])]
    parts = ray_runtime._split([0, 1, 2, 3], [5, 5, 5, 5], [small, large])
    assert [len(part) for _, part in parts] == [1, 3]


def test_each_node_is_given_its_own_copy_once():
    one, two = (ray_runtime._Node("", 1, mock.Mock(), None) for _ in range(2))
    placed = ray_runtime.Placed([np.zeros(3, np.float32)])
    assert placed.num_bytes == 12
    assert placed.at(one) is placed.at(one) is not placed.at(two)
    assert one.actor.keep.remote.call_count == two.actor.keep.remote.call_count == 1
