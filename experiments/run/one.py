"""One run: from a config to trained models, with the files of a run or without."""

import contextlib
import dataclasses
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from experiments.run import comparison, processes, setup, summary
from experiments.run.config import RunConfig
from tff_het.datasets import Examples
from tff_het.evaluation import factors, figures
from tff_het.learning.process import FederatedProcess
from tff_het.simulation import checkpoints, loop, records
from tff_het.simulation import start as starts


@dataclasses.dataclass(frozen=True)
class Result:
    """What came out of one run.

    Attributes:
      config: Its settings.
      made: Its data, clients and network.
      process: Its method's process.
      rounds: The state after the last round and what was measured, see `loop.Result`.
      curves: What was measured in each round: arrays by name, one number a round (NaN where it
        was not measured).
      clients: Each client's accuracy after the last round on its test examples, by its id.
      summary: What `summary.json` holds.
      temporary: The folder of the run's files, where none was given.

    Clients' states are read from the run's folder, which is in use until `close` or the end of a
    `with` block.
    """

    config: RunConfig
    made: setup.Setup
    process: FederatedProcess
    rounds: loop.Result
    curves: Mapping[str, np.ndarray]
    clients: Mapping[str, float]
    summary: Mapping[str, Any]
    temporary: tempfile.TemporaryDirectory | None = None

    def __enter__(self) -> "Result":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Leaves the run's folder; nothing can be predicted any more."""
        self.rounds.client_states.close()
        if self.temporary is not None:
            self.temporary.cleanup()

    def predict(self, client: int, examples: Examples) -> Mapping[str, np.ndarray]:
        """Returns what one client's own model says of examples: `logits` [n, classes] and others.

        Args:
          client: The client's index.
          examples: Columns that the network reads, and `y`.
        """
        state = self.rounds.client_states.get(client, self.rounds.state)
        return self.process.predict(self.rounds.state.weights, state, examples, client=client)


def run(
    config: RunConfig,
    folder: str | Path | None = None,
    *,
    on_round: Callable[[int], None] | None = None,
) -> Result:
    """Trains one method in the runtime that is installed, by default in this process.

    Args:
      config: Its settings, of one method; `output_dir` is not used.
      folder: Where the run's files go, and where an unfinished run of the same config is continued;
        none are kept by default.
      on_round: Called after each round with the number of rounds so far.

    Raises:
      ValueError: If settings do not fit the data, or name several methods.
      FileNotFoundError: If data are missing.
      CheckpointError: If the folder has a run of other settings.
      DivergedError: If a loss is not finite any more.
    """
    if len(config.method.method) != 1:
        raise ValueError(
            f"Expected one method, found {', '.join(config.method.method)}: run a config of each."
        )
    made = setup.make(config)
    ((name, process),) = processes.build(made).items()
    temporary = tempfile.TemporaryDirectory() if folder is None else None
    path = Path(temporary.name if temporary is not None else folder or "")
    done = checkpoints.rounds_done(path, processes.identity(made, name))
    loop.check_length(path, done, made.settings)
    rounds = train_method(name, process, made, path, done, on_round=on_round)
    return Result(
        config=config,
        made=made,
        process=process,
        rounds=rounds,
        curves=_curves(path / "metrics.csv"),
        clients=comparison.by_client(path),
        summary=records.read_json(path / "summary.json"),
        temporary=temporary,
    )


def train_method(
    name: str,
    process: FederatedProcess,
    made: setup.Setup,
    folder: Path,
    done: int,
    *,
    show: bool = False,
    on_round: Callable[[int], None] | None = None,
) -> loop.Result:
    """Trains one method, or goes on with it after `done` rounds, and writes its summary.

    Args:
      name: The method.
      process: Its process.
      made: What is trained on.
      folder: The method's folder.
      done: How many rounds its run has.
      show: Whether there is a progress bar, and a picture of the factors where there are some.
      on_round: As `run`.

    Returns:
      What training gave, with open client states.
    """
    folder.mkdir(parents=True, exist_ok=True)
    records.write_atomically(folder / "flags.txt", made.config.flagfile(name))
    total = made.settings.rounds
    course = processes.course(made, name, process)
    with _bar(name, total, done, show) as bar:

        def told(row: Mapping[str, Any], seconds: float) -> None:
            _show(bar, row, seconds)
            if on_round is not None:
                on_round(int(row["round"]))

        result = loop.train(
            process,
            course.population,
            course.schedule,
            made.settings,
            evaluated=made.population,
            ledger=course.ledger,
            test_examples=made.common_test,
            folder=folder,
            config=processes.identity(made, name),
            on_round=told,
            start=made.start,
        )
    if result.is_complete:
        used = factors.of_clients(process.model, summary.states(made, result))
        table = folder / "metrics.csv"
        found = summary.of_run(name, made, process, result, course, used, table)
        records.write_json(folder / "summary.json", found)
        if made.training.acquisition is not None:
            acquired = summary.acquired(made, course, result)
            records.write_atomically(folder / "acquired.csv", acquired)
        if used and show:
            figures.save(factors.figure(used), folder / "figures" / "factors.png")
        # The last file: who starts from this run needs the summary as well.
        starts.write(folder, starts.after(process, result.state))
    if result.stopped_by is not None:
        result.client_states.close()
        print(
            f"Stopped by {result.stopped_by.name} after round {result.rounds} of {total}: the same "
            "command goes on from there.",
            file=sys.stderr,
        )
        sys.exit(128 + result.stopped_by)
    return result


def save_initial_weights(processes: Mapping[str, FederatedProcess], path: Path) -> None:
    """Writes the weights that all methods start with, by path, as `starts.read` takes them."""
    values: dict[str, np.ndarray] = {}
    for process in processes.values():
        values |= starts.after(process, process.initialize()).values
    path.parent.mkdir(parents=True, exist_ok=True)
    starts.write(path.parent, starts.Start(values), path.name)


def _curves(table: Path) -> dict[str, np.ndarray]:
    rows = records.read_table(table)
    return {name: np.array([float(row[name] or "nan") for row in rows]) for name in rows[0]}


@contextlib.contextmanager
def _bar(name: str, total: int, done: int, show: bool) -> Iterator[tqdm]:
    # A bar redraws its line, which a file cannot: there, it would be a line each time.
    disable = None if show else True
    with tqdm(
        total=total, initial=done, desc=name, unit="round", dynamic_ncols=True, disable=disable
    ) as bar:
        yield bar


def _show(bar: tqdm, row: Mapping[str, Any], seconds: float) -> None:
    shown = {"loss": f"{row['train_loss']:.3f}"}
    if (accuracy := row.get("local_test_accuracy_mean")) is not None:  # Not in every round.
        shown["accuracy"] = f"{accuracy:.3f}"
    shown["MB"] = f"{(row['bytes_up'] + row['bytes_down']) / 1e6:.2f}"
    shown["s"] = f"{seconds:.2f}"
    bar.set_postfix(shown, refresh=False)
    bar.update()
