"""Measures a round of federated averaging in five suites, on this machine's CPU.

  python docs/comparison.py tff-het W1 10
  FLOWER=venvs/flower/bin/python FEDJAX=venvs/fedjax/bin/python python docs/comparison.py all

The first form runs one suite and prints a line of JSON. In the second, which needs only Python,
suites take turns, block by block, each time in a new process. TFF_HET, FLOWER, PFLLIB, FEDJAX and
PFL_RESEARCH say how each suite's interpreter is called; suites without are left out. PFLLIB_SOURCE
is a checkout of PFLlib. The table has medians over blocks, in brackets the least and the greatest.

Ten clients, random examples, all clients in each round, plain SGD, a mean weighted by examples, no
evaluation (PFLlib and pfl-research evaluate in their first round, which does not count).
"""

import argparse
import contextlib
import functools
import importlib.metadata
import itertools
import json
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import types
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

# PFLlib is not installed: where it lies.
PFLLIB_SOURCE = os.environ.get("PFLLIB_SOURCE", "PFLlib")

RATE, CLIENTS, WARM_UP = 0.05, 10, 2


class Workload(NamedTuple):
    """A network, each hidden layer with ReLU, and what each client trains it on."""

    shape: tuple[int, ...]  # Of an example: height, width, channels, or features.
    classes: int
    examples: int
    batch_size: int
    filters: tuple[int, ...]  # Of convolutions of 5 x 5, which keep the size; a pool behind each.
    units: tuple[int, ...]
    dropout: float  # Behind each layer of units.


WORKLOADS = {
    "W1": Workload((784,), 10, 2400, 10, (), (200,), 0.0),
    "W2": Workload((28, 28, 1), 62, 200, 20, (32, 64), (512,), 0.0),
    "W3": Workload((1024,), 2, 320, 32, (), (64, 64), 0.5),
}


@functools.cache
def clients(name: str) -> list[tuple[Any, Any]]:
    """Returns what the clients hold, the same in each suite: x float32 [n, *shape], y int32 [n]."""
    import numpy as np

    of, rng = WORKLOADS[name], np.random.default_rng(0)
    size = (CLIENTS, of.examples)
    xs = rng.standard_normal((*size, *of.shape), np.float32)
    return [*zip(xs, rng.integers(of.classes, size=size, dtype=np.int32), strict=True)]


# Each of the following runs a workload in a suite and returns the moments between its rounds: one
# more than rounds.


def tff_het(name: str, rounds: int) -> list[float]:
    """Runs ours, in process and without a folder: like the others, it writes nothing."""
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from tff_het import methods
    from tff_het.backend.names import tff
    from tff_het.clients import Client, Population
    from tff_het.learning.local_training import LocalTraining
    from tff_het.models import architectures
    from tff_het.simulation import cohorts, loop

    of = WORKLOADS[name]
    held = [{"x": x, "y": y} for x, y in clients(name)]
    population = Population(Client(str(k), own, own, own) for k, own in enumerate(held))
    network = tff_het_network(of)
    architecture = architectures.make(name, population.element_spec, of.classes, network)
    sgd = tff.learning.optimizers.build_sgdm(RATE)
    process = methods.build("fed_avg", architecture, LocalTraining(sgd, of.batch_size, 1), seed=0)
    # It evaluates after its last round, which is therefore one more than asked for.
    settings = loop.Settings(rounds + 1, 0, rounds + 1, cohorts.always(0))
    moments = [time.perf_counter()]
    loop.train(
        process,
        population,
        cohorts.uniform(CLIENTS, CLIENTS, seed=0),
        settings,
        on_round=lambda *_: moments.append(time.perf_counter()),
    )
    return moments[:-1]


def tff_het_network(of: Workload) -> Any:
    """Returns the function that builds a workload's network of our layers."""
    from tff_het.backend.names import keras
    from tff_het.models.layers import Dropout

    def network(x, num_classes, layers):
        for index, filters in enumerate(of.filters):
            x = keras.layers.MaxPool2D()(layers.conv(filters, 5, f"conv_{index}")(x))
        x = keras.layers.Flatten()(x)
        for index, units in enumerate(of.units):
            x = layers.dense(units, f"dense_{index}")(x)
            x = Dropout(of.dropout)(x) if of.dropout else x
        return x, layers.output(num_classes)(x)

    return network


def flower(name: str, rounds: int) -> list[float]:
    """Runs Flower's simulation: two clients side by side, each on one core."""
    os.environ["FLWR_TELEMETRY_ENABLED"] = "0"
    import torch
    from flwr.app import ArrayRecord, Message, MetricRecord, RecordDict
    from flwr.clientapp import ClientApp
    from flwr.serverapp import ServerApp
    from flwr.serverapp.strategy import FedAvg
    from flwr.simulation import run_simulation

    client_app, server_app, moments = ClientApp(), ServerApp(), []

    @client_app.train()
    def train(message, context):
        import comparison  # The worker's own, so that examples stay there from round to round.

        torch.set_num_threads(1)
        network = comparison.torch_network(name)
        network.load_state_dict(message.content["arrays"].to_torch_state_dict())
        x, y = comparison.tensors(name)[context.node_config["partition-id"]]
        optimizer = torch.optim.SGD(network.parameters(), comparison.RATE)
        for rows in torch.randperm(len(x)).split(comparison.WORKLOADS[name].batch_size):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(network(x[rows]), y[rows]).backward()
            optimizer.step()
        metrics = MetricRecord({"num-examples": len(x)})
        content = {"arrays": ArrayRecord(network.state_dict()), "metrics": metrics}
        return Message(content=RecordDict(content), reply_to=message)

    @server_app.main()
    def main(grid, context):
        FedAvg(fraction_evaluate=0.0).start(
            grid,
            ArrayRecord(torch_network(name).state_dict()),
            num_rounds=rounds,
            evaluate_fn=lambda *_: moments.append(time.perf_counter()),  # Before and between.
        )

    resources = {"init_args": {"num_cpus": 2}, "client_resources": {"num_cpus": 1, "num_gpus": 0}}
    run_simulation(server_app, client_app, CLIENTS, backend_config=resources)
    return moments


def pfllib(name: str, rounds: int) -> list[float]:
    """Runs PFLlib's own server, which trains one client after another."""
    sys.path.insert(0, f"{PFLLIB_SOURCE}/system")
    import numpy as np
    import torch
    from flcore.servers.serveravg import FedAvg

    torch.set_num_threads(int(os.environ.get("PFLLIB_THREADS", "1")))
    of = WORKLOADS[name]
    options = types.SimpleNamespace(
        algorithm="FedAvg",
        model=torch_network(name),
        dataset=name,
        num_classes=of.classes,
        num_clients=CLIENTS,
        global_rounds=rounds - 1,  # It makes one more.
        local_epochs=1,
        batch_size=of.batch_size,
        local_learning_rate=RATE,
        join_ratio=1.0,
        eval_gap=rounds,
        device="cpu",
        time_select=False,
        time_threthold=10000,
        **dict.fromkeys(
            ("random_join_ratio", "learning_rate_decay", "dlg_eval", "auto_break"), False
        ),
        **dict.fromkeys(("client_drop_rate", "train_slow_rate", "send_slow_rate"), 0.0),
        **dict.fromkeys(("few_shot", "num_new_clients", "fine_tuning_epoch_new"), 0),
        **dict.fromkeys(("dlg_gap", "top_cnt", "batch_num_per_client"), 100),
        learning_rate_decay_gamma=0.99,
        goal="test",
        save_folder_name="items",
    )
    with tempfile.TemporaryDirectory() as root, contextlib.chdir(root):
        for (k, (x, y)), split in itertools.product(enumerate(clients(name)), ("train", "test")):
            folder = Path("dataset", name, split)
            folder.mkdir(parents=True, exist_ok=True)
            x = np.ascontiguousarray(np.moveaxis(x, -1, 1)) if of.filters else x
            np.savez(folder / f"{k}.npz", data={"x": x, "y": y})
        Path("system").mkdir()
        with contextlib.chdir("system"):  # Its paths begin with `../`.
            server = FedAvg(options, 0)
            server.train()
    return [*itertools.accumulate(server.Budget, initial=0.0)]


def fedjax(name: str, rounds: int) -> list[float]:
    """Runs FedJAX, one client after another, each step compiled."""
    import fedjax
    import jax

    of = WORKLOADS[name]
    held = {b"%d" % k: {"x": x, "y": y} for k, (x, y) in enumerate(clients(name))}
    model = fedjax.create_model_from_haiku(
        haiku_network(of),
        {column: rows[:1] for column, rows in held[b"0"].items()},
        lambda batch, logits: fedjax.metrics.unreduced_cross_entropy_loss(batch["y"], logits),
    )
    algorithm = fedjax.algorithms.fed_avg.federated_averaging(
        fedjax.model_grad(model),
        fedjax.optimizers.sgd(RATE),
        fedjax.optimizers.sgd(1.0),
        fedjax.ShuffleRepeatBatchHParams(of.batch_size, num_epochs=1),
    )
    data = fedjax.InMemoryFederatedData(held)
    sampler = fedjax.client_samplers.UniformGetClientSampler(data, CLIENTS, seed=0)
    state = algorithm.init(model.init(jax.random.PRNGKey(0)))
    moments = [time.perf_counter()]
    for _ in range(rounds):
        state, _ = algorithm.apply(state, sampler.sample())
        jax.block_until_ready(state.params)  # Else the call returns before it has computed.
        moments.append(time.perf_counter())
    return moments


def haiku_network(of: Workload) -> Any:
    """Returns a workload's network of Haiku's modules."""
    import haiku as hk
    import jax

    def forward(batch):
        x = batch["x"]
        for filters in of.filters:
            x = hk.max_pool(jax.nn.relu(hk.Conv2D(filters, 5)(x)), 2, 2, "VALID", channel_axis=-1)
        x = hk.Flatten()(x)
        for units in of.units:
            x = jax.nn.relu(hk.Linear(units)(x))
            x = hk.dropout(hk.next_rng_key(), of.dropout, x) if of.dropout else x
        return hk.Linear(of.classes)(x)

    return hk.transform(forward)


def pfl_research(name: str, rounds: int) -> list[float]:
    """Runs pfl-research, under `torchrun` in as many processes as that starts."""
    import torch
    from pfl.aggregate.simulate import SimulatedBackend
    from pfl.aggregate.weighting import WeightByDatapoints
    from pfl.algorithm.base import NNAlgorithmParams
    from pfl.algorithm.federated_averaging import FederatedAveraging
    from pfl.callback.base import TrainingProcessCallback
    from pfl.data.federated_dataset import FederatedDataset
    from pfl.data.pytorch import PyTorchTensorDataset
    from pfl.data.sampling import get_user_sampler
    from pfl.hyperparam import NNTrainHyperParams
    from pfl.metrics import Metrics, Weighted
    from pfl.model.pytorch import PyTorchModel

    torch.set_num_threads(2 // int(os.environ.get("WORLD_SIZE", "1")))
    torch.manual_seed(0)  # All processes begin with the same network.

    class Network(torch.nn.Sequential):
        def loss(self, x, y):
            return torch.nn.functional.cross_entropy(self(x), y)

        def metrics(self, x, y):
            return {"loss": Weighted(self.loss(x, y).item() * len(x), len(x))}

    class Clock(TrainingProcessCallback):
        def after_central_iteration(self, aggregate_metrics, model, *, central_iteration):
            moments.append(time.perf_counter())
            return False, Metrics()

    network = Network(*torch_network(name))
    model = PyTorchModel(network, torch.optim.SGD, torch.optim.SGD(network.parameters(), 1.0))
    users = [PyTorchTensorDataset(own) for own in tensors(name)]
    sampler = get_user_sampler("minimize_reuse", range(CLIENTS))
    data = FederatedDataset(users.__getitem__, sampler)
    backend = SimulatedBackend(data, data, [WeightByDatapoints()])
    training = NNTrainHyperParams(
        local_num_epochs=1, local_learning_rate=RATE, local_batch_size=WORKLOADS[name].batch_size
    )
    params = NNAlgorithmParams(
        central_num_iterations=rounds,
        evaluation_frequency=rounds,
        train_cohort_size=CLIENTS,
        val_cohort_size=0,
    )
    moments = [time.perf_counter()]
    FederatedAveraging().run(params, backend, model, training, callbacks=[Clock()])
    return moments


def torch_network(name: str) -> Any:
    """Returns a workload's network of PyTorch's modules, for three of the suites."""
    from torch import nn

    of, layers = WORKLOADS[name], []
    for filters in of.filters:
        layers += [nn.LazyConv2d(filters, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2)]
    layers.append(nn.Flatten())
    for units in of.units:
        layers += [
            nn.LazyLinear(units),
            nn.ReLU(),
            *([nn.Dropout(of.dropout)] if of.dropout else []),
        ]
    network = nn.Sequential(*layers, nn.LazyLinear(of.classes))
    network(tensors(name)[0][0][:1])  # This gives the layers their sizes.
    return network


@functools.cache
def tensors(name: str) -> list[tuple[Any, Any]]:
    """Returns `clients` as PyTorch's tensors, channels first."""
    import torch

    of = WORKLOADS[name]
    pairs = [(torch.from_numpy(x), torch.from_numpy(y).long()) for x, y in clients(name)]
    return [(x.movedim(-1, 1).contiguous() if of.filters else x, y) for x, y in pairs]


RUNS = {
    "tff-het": tff_het,
    "Flower": flower,
    "PFLlib": pfllib,
    "FedJAX": fedjax,
    "pfl-research": pfl_research,
}


def version(suite: str) -> str:
    """Returns the suite's version, or its commit where it has no releases."""
    if suite == "PFLlib":
        command = ["git", "-C", PFLLIB_SOURCE, "rev-parse", "--short", "HEAD"]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    packages = {"Flower": "flwr", "pfl-research": "pfl"}
    return importlib.metadata.version(packages.get(suite, suite))


@contextlib.contextmanager
def memory() -> Iterator[dict[str, float]]:
    """Gives the greatest megabytes seen, of a process and all that it started.

    `rss` counts a page once for each process that has it, `pss` once in all. To find the latter the
    kernel passes over all pages, which takes up to 30 ms a process: hence only every other second.
    """
    root = os.getppid() if "TORCHELASTIC_RUN_ID" in os.environ else os.getpid()
    peaks, ended = {"rss": 0.0, "pss": 0.0}, threading.Event()

    def family(pid: int) -> Iterator[int]:
        yield pid
        with contextlib.suppress(OSError):
            for children in Path(f"/proc/{pid}/task").glob("*/children"):
                for child in children.read_text(encoding="utf-8").split():
                    yield from family(int(child))

    def read() -> None:
        sums = dict.fromkeys(peaks, 0)
        for pid in family(root):
            with contextlib.suppress(OSError):  # It may just have ended.
                text = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="utf-8")
                for key, number, *_ in map(str.split, text.splitlines()[1:]):
                    if (key := key.rstrip(":").lower()) in sums:
                        sums[key] += int(number)
        peaks.update((key, max(peaks[key], value * 1024 / 1e6)) for key, value in sums.items())

    def watch() -> None:
        # Of several processes' watchers, each of which would see all, one is enough.
        while os.environ.get("RANK", "0") == "0" and not ended.wait(2.0):
            read()

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    yield peaks
    ended.set()
    thread.join()
    read()


def run_one(suite: str, name: str, rounds: int) -> None:
    """Runs a suite in this process and prints what it took."""
    sys.path.insert(0, str(Path(__file__).parent))  # For Flower's workers.
    # What suites print goes to the other stream.
    with memory() as peaks, contextlib.redirect_stdout(sys.stderr):
        moments = RUNS[suite](name, rounds)
    if os.environ.get("RANK", "0") == "0":
        row = {"suite": suite, "version": version(suite), "workload": name}
        row["seconds"] = [round(after - before, 5) for before, after in itertools.pairwise(moments)]
        print(json.dumps(row | {f"max_{key}_mb": round(peak) for key, peak in peaks.items()}))


def run_all(rounds: int, blocks: int, output: Path) -> None:
    """Runs all suites by turns, and writes the table and, beside it, the lines."""
    called = {suite: os.environ.get(suite.upper().replace("-", "_")) for suite in RUNS}
    called["tff-het"] = called["tff-het"] or sys.executable
    rows, names = [], [suite for suite in RUNS if called[suite]]
    with output.with_suffix(".jsonl").open("w", encoding="utf-8") as lines:
        for block, name, turn in itertools.product(range(blocks), WORKLOADS, range(len(names))):
            suite = names[(block + turn) % len(names)]  # Each comes first in some block.
            command = shlex.split(called[suite])
            command += [__file__, suite, name, str(rounds)]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode:
                sys.exit(f"{shlex.join(command)} failed:\n{done.stderr[-3000:]}")
            rows.append({"block": block, **json.loads(done.stdout.splitlines()[-1])})
            print(json.dumps(rows[-1]), file=lines, flush=True)
    output.write_text(table(rows), encoding="utf-8")


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Returns the table in Markdown."""
    found = {(row["workload"], row["suite"]): [] for row in rows}
    for row in rows:
        median = statistics.median(row["seconds"][WARM_UP:])
        found[row["workload"], row["suite"]].append((median, row["max_pss_mb"], row["version"]))
    text = "| workload | suite | seconds a round | times ours | MB |\n|---|---|---|---|---|\n"
    for (name, suite), own in found.items():
        seconds, megabytes, versions = zip(*own, strict=True)
        pairs = zip(seconds, found[name, "tff-het"], strict=True)
        ratios = [mine / ours for mine, (ours, *_) in pairs]
        cells = [name, f"{suite} {versions[0]}", spread(seconds, 3), spread(ratios, 2)]
        text += f"| {' | '.join(cells)} | {max(megabytes):,.0f} |\n"
    return text


def spread(numbers: Sequence[float], digits: int) -> str:
    """Returns the median, the least and the greatest."""
    median, least, most = statistics.median(numbers), min(numbers), max(numbers)
    return f"{median:.{digits}f} [{least:.{digits}f}, {most:.{digits}f}]"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    if sys.argv[1:2] == ["all"]:
        parser.add_argument("all")
        parser.add_argument("--rounds", type=int, default=12)
        parser.add_argument("--blocks", type=int, default=5)
        parser.add_argument("--output", type=Path, default=Path("comparison.md"))
        arguments = parser.parse_args()
        run_all(arguments.rounds, arguments.blocks, arguments.output)
    else:
        parser.add_argument("suite", choices=RUNS)
        parser.add_argument("workload", choices=WORKLOADS)
        parser.add_argument("rounds", type=int)
        run_one(
            **{("name" if k == "workload" else k): v for k, v in vars(parser.parse_args()).items()}
        )
