"""One run: from a config to trained models, with the files of a run or without."""

import contextlib
import dataclasses
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from experiments.run import comparison, processes, setup, summary
from experiments.run.config import RunConfig
from tff_het.datasets import Examples
from tff_het.evaluation import factors, figures, judging
from tff_het.learning.process import FederatedProcess
from tff_het.simulation import checkpoints, loop, records, start


@dataclasses.dataclass(frozen=True)
class Result(contextlib.AbstractContextManager):
    """What came out of one run.

    Attributes:
      config, process: Its settings; the method's process.
      made: Its data, clients and network.
      rounds: The state after the last round and what was measured, see `loop.Result`.
      curves: What was measured, by name: arrays [rounds], NaN where it was not measured.
      clients: Accuracy after the last round of each client evaluated, on its test examples, by id.
      summary: What `summary.json` holds.
      close: Leaves the run's folder; nothing can be predicted any more.

    Its folder, which has the clients' states, is in use until `close` or the end of a `with` block.
    """

    config: RunConfig
    made: setup.Setup
    process: FederatedProcess
    rounds: loop.Result
    curves: Mapping[str, np.ndarray]
    clients: Mapping[str, float]
    summary: Mapping[str, Any]
    close: Callable[[], None]

    def __exit__(self, *_: object) -> None:
        self.close()

    def predict(self, client: int, examples: Examples) -> Mapping[str, np.ndarray]:
        """Returns outputs of a client's own model: `logits` [n, classes], `hidden` [n, units].

        Examples are the columns that the network reads, such as x [n, ...].
        """
        server, made = self.rounds.state, self.made
        state = self.rounds.client_states.get(client, server)
        of = (self.process, server, state, made.population, client, examples)
        return judging.own_predictions(*of, seed=made.settings.seed)


def run(
    config: RunConfig,
    folder: str | Path | None = None,
    *,
    on_round: Callable[[int], None] = lambda round_num: None,
) -> Result:
    """Trains one method in the runtime that is installed, by default in this process.

    Args:
      config: Its settings, of one method; its `output_dir` and runtime are not used.
      folder: Where files go, and an unfinished run of this config goes on. Default: none are kept.
      on_round: Called after each round with the number of rounds so far.

    Raises:
      ValueError: If settings do not fit the data, or name several methods.
      FileNotFoundError: If data are missing.
      CheckpointError: If the folder has a run of other settings.
      DivergedError: If a loss is not finite any more.
      SystemExit: If SIGINT or SIGTERM stops it; with a folder, the same call continues it.
    """
    if len(config.method.method) != 1:
        raise ValueError(f"Expected one method, found {', '.join(config.method.method)}.")
    made = setup.make(config)
    built = processes.build(made)
    ((name, process),) = built.items()
    if config.run.save_initial_weights is not None:
        save_initial_weights(built, Path(config.run.save_initial_weights))
    with contextlib.ExitStack() as opened:
        if folder is None:
            folder = opened.enter_context(tempfile.TemporaryDirectory())
        path = Path(folder)
        rounds = train_method(name, process, made, path, on_round=on_round)
        opened.callback(rounds.client_states.close)
        table = records.read_table(path / "metrics.csv")
        return Result(
            config=config,
            made=made,
            process=process,
            rounds=rounds,
            curves={key: np.array([float(row[key] or "nan") for row in table]) for key in table[0]},
            clients=comparison.by_client(path),
            summary=records.read_json(path / "summary.json"),
            close=opened.pop_all().close,
        )


def rounds_done(folder: Path, made: setup.Setup, identity: Mapping[str, Any]) -> int:
    """Returns how many rounds of a run are in its folder; refuses more, and those of others."""
    done = checkpoints.rounds_done(folder, identity)
    loop.check_length(folder, done, made.settings)
    return done


def train_method(
    name: str,
    process: FederatedProcess,
    made: setup.Setup,
    folder: Path,
    *,
    show: bool = False,
    on_round: Callable[[int], None] = lambda round_num: None,
) -> loop.Result:
    """Trains a method in its folder, or goes on with it, and writes its summary.

    With `show` there are a progress bar and a picture of the factors, if any. States stay open.
    """
    identity, total = processes.identity(made, name), made.settings.rounds
    done = rounds_done(folder, made, identity)
    folder.mkdir(parents=True, exist_ok=True)
    if done < total:  # Those of a shorter run: no other is to start from them.
        (folder / start.FILE).unlink(missing_ok=True)
    records.write_atomically(folder / "flags.txt", made.config.flagfile(name))
    course = processes.course(made, name, process)
    # A bar redraws its line, which a file cannot: there, it would be a line each time.
    seen = show and sys.stderr is not None and sys.stderr.isatty()
    look: dict[str, Any] = {"dynamic_ncols": True, "disable": not seen}
    with tqdm(total=total, initial=done, desc=name, unit="round", **look) as bar:

        def told(row: Mapping[str, Any], seconds: float) -> None:
            shown = {"loss": f"{row['train_loss']:.3f}"}
            if (accuracy := row.get("local_test_accuracy_mean")) is not None:  # Not in every round.
                shown["accuracy"] = f"{accuracy:.3f}"
            shown["MB"] = f"{(row['bytes_up'] + row['bytes_down']) / 1e6:.2f}"
            shown["s"] = f"{seconds:.2f}"
            bar.set_postfix(shown, refresh=False)
            bar.update()
            on_round(int(row["round"]))

        result = loop.train(
            process,
            *course.trainers,
            made.settings,
            evaluated=made.population,
            ledger=course.ledger,
            test_examples=made.common_test,
            folder=folder,
            config=identity,
            on_round=told,
            start=made.start,
        )
    if result.evaluation is not None:
        clients = result.evaluation.clients
        states = (result.client_states.get(client, result.state) for client in clients)
        used = factors.of_clients(process.model, states)
        found = summary.of_run(made, course, result, used, folder / "metrics.csv")
        records.write_json(folder / "summary.json", found)
        if made.training.acquisition is not None:
            text = summary.acquired(made, course, result)
            records.write_atomically(folder / "acquired.csv", text)
        if used and show:
            figures.save(factors.figure(used), folder / "figures" / "factors.png")
        # The last file: who starts from this run needs the summary as well.
        start.write(folder, start.after(process, result.state))
    if result.stopped_by is not None:
        result.client_states.close()
        print(
            f"Stopped by {result.stopped_by.name} after round {result.rounds} of {total}: the same "
            "command goes on from there.",
            file=sys.stderr,
        )
        sys.exit(128 + result.stopped_by)
    return result


def compare(processes: Mapping[str, FederatedProcess], made: setup.Setup, folder: Path) -> None:
    """Trains methods, each in a folder of its name, and compares those that do not diverge."""
    compared, diverged = [], []
    for name, process in processes.items():
        try:
            train_method(name, process, made, folder / name, show=True).client_states.close()
            compared.append(name)
        except loop.DivergedError as error:
            diverged.append(f"{name}: {error}")
    if compared:
        print(comparison.write(made, folder, compared))
        print(f"Results: {folder}; pictures: {folder / 'figures'}")
    if diverged:
        raise loop.DivergedError(" ".join(diverged))


def save_initial_weights(processes: Mapping[str, FederatedProcess], path: Path) -> None:
    """Writes the weights that all methods start with, by path, as `start.read` takes them."""
    values: dict[str, np.ndarray] = {}
    for process in processes.values():
        values |= start.after(process, process.initialize()).values
    path.parent.mkdir(parents=True, exist_ok=True)
    start.write(path.parent, start.Start(values), path.name)
