"""The one training loop: cohort, round, client states, evaluation, checkpoint, report."""

import dataclasses
import math
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from tff_het.backend.names import tff
from tff_het.clients import Population
from tff_het.evaluation import communication
from tff_het.learning.process import FederatedProcess, ServerState
from tff_het.numbers import INT32, Number
from tff_het.simulation import tracking
from tff_het.simulation.background import Writer
from tff_het.simulation.checkpoints import CheckpointError, Checkpoints, path_in
from tff_het.simulation.client_states import ClientStates
from tff_het.simulation.cohorts import Schedule
from tff_het.simulation.evaluating import Evaluation, Evaluator, column
from tff_het.simulation.feeding import Prepared, cohort_inputs, run_round
from tff_het.simulation.records import Records
from tff_het.simulation.start import Start
from tff_het.simulation.stopping import StopRequest


class DivergedError(RuntimeError):
    """Training gave numbers that are not finite."""


@dataclasses.dataclass(frozen=True)
class Goal:
    """An accuracy at which training ends.

    Attributes:
      accuracy: What the mean over clients has to reach, each with its own model, in (0, 1].
      split: 'validation', or 'test' to do as papers do that choose by their test data.
    """

    accuracy: float
    split: str = "validation"

    def __post_init__(self):
        if not 0 < self.accuracy <= 1:
            raise ValueError(f"A goal is an accuracy in (0, 1], found {self.accuracy}.")
        if self.split not in ("validation", "test"):
            raise ValueError(f"A goal's split is validation or test, found {self.split!r}.")


@dataclasses.dataclass(frozen=True)
class Settings:
    """Settings of training: rounds, evaluation, checkpoints.

    Attributes:
      rounds: Number of rounds, the greatest where there is a goal.
      seed: All of the run's draws follow from it.
      eval_every: Clients are evaluated after this many rounds, and after the last.
      evaluation_cohorts: A schedule, from rounds done to the clients evaluated; all by default.
      checkpoint_every: A checkpoint is made after this many rounds, and after the last.
      states_in_memory: Whether client states stay in memory, and examples as tensors; otherwise
        both are read in each round, states from the checkpoint file, to which they return.
      tracking: Which of `tracking.TRACKERS` log each round's row.
      goal: Training ends after the first round at which it is seen to be reached; it is looked
        for after every `eval_every` rounds.
    """

    rounds: int
    seed: int
    eval_every: int = 1
    evaluation_cohorts: Schedule | None = None
    checkpoint_every: int = 1
    states_in_memory: bool = True
    tracking: Sequence[str] = ("tensorboard",)
    goal: Goal | None = None

    def __post_init__(self):
        tracking.check(self.tracking)
        for name in ("rounds", "eval_every", "checkpoint_every"):
            Number(1, INT32, is_whole=True).check(name, getattr(self, name))
        Number(0, 2**63 - 1, is_whole=True).check("seed", self.seed)


class Result(NamedTuple):
    """What training gives.

    Attributes:
      state: The server's state.
      client_states: The clients'. Those of a folder are read from its checkpoint file, which is in
        use until they are closed.
      rounds: Rounds done, fewer than asked for where a signal stopped the run or the goal was
        reached.
      evaluation: After the last round; None where the run was stopped.
      rows: One for each round trained here, as in `metrics.csv`.
      stopped_by: The signal that asked to stop; after it, no further round was begun.
      goal_reached: Whether there is a goal and it was reached.
    """

    state: ServerState
    client_states: ClientStates
    rounds: int
    evaluation: Evaluation | None
    rows: list[dict[str, Any]]
    stopped_by: signal.Signals | None
    goal_reached: bool

    @property
    def is_complete(self) -> bool:
        """Whether there is nothing left to do."""
        return self.evaluation is not None


# Called after each round with its row and the seconds that it took.
OnRound = Callable[[Mapping[str, Any], float], None]
# Called after each evaluation with the rounds done and what was found, client by client.
OnEvaluation = Callable[[int, Evaluation], None]


def train(
    process: FederatedProcess,
    population: Population,
    schedule: Schedule,
    settings: Settings,
    *,
    evaluated: Population | None = None,
    test_examples: Mapping[str, np.ndarray] | None = None,
    ledger: communication.Ledger | None = None,
    folder: Path | None = None,
    config: Mapping[str, Any] | None = None,
    on_round: OnRound | None = None,
    on_evaluation: OnEvaluation | None = None,
    start: Start | None = None,
) -> Result:
    """Trains a process on a population; continues where the folder's run stopped.

    With a folder, SIGINT and SIGTERM end it after the round under way, with a checkpoint. Without,
    there is nothing to go on from, and they interrupt it as they would any program.

    Args:
      process: Any process of this project.
      population: The clients.
      schedule: Who trains in a round.
      settings: See `Settings`.
      evaluated: The first clients of the population, if others that train (a pooled
        one) are not to be evaluated; all by default.
      test_examples: Common test set of the global model; by default all evaluated
        clients' test examples together.
      ledger: What a client sends and receives in a round, where that is not what
        the process moves; see `communication.staying_put`.
      folder: Where the run's files go; without, nothing is written.
      config: What defines the run, kept with the checkpoints: a folder with a run
        of another `config` is refused.
      on_round: Called after every round.
      on_evaluation: Called after every evaluation that is due.
      start: Values to begin with instead of the process's initial ones; a run that goes on has
        them already. The schedule goes on behind the rounds before.

    Raises:
      CheckpointError: If the folder's run cannot be continued.
      DivergedError: If a loss is not finite any more.
      ValueError: If `evaluated` are not the population's first clients, `start` does not fit the
        model, or there are no examples to evaluate the goal on.
    """
    evaluated = population if evaluated is None else evaluated
    if evaluated.ids != population.ids[: len(evaluated)]:
        raise ValueError(
            "Client states are kept by place, so those evaluated must be the population's first "
            f"clients, {', '.join(population.ids[: len(evaluated)][:3])}, ...; found "
            f"{', '.join(evaluated.ids[:3])}, ..."
        )
    cohorts = settings.evaluation_cohorts
    evaluate = Evaluator(process, evaluated, test_examples, settings.seed, cohorts)
    if settings.goal is not None and settings.goal.split not in evaluate.splits:
        raise ValueError("A goal is judged on validation examples, of which no client has any.")
    ledger = communication.ledger(process) if ledger is None else ledger
    training = _Training(process, population, settings, evaluate, ledger, folder, config or {})
    try:
        training.begin(start)
        with StopRequest(listen=folder is not None) as stop:
            while not training.is_over():
                row, seconds = training.round(schedule, stop, on_evaluation)
                if on_round is not None:
                    on_round(row, seconds)
                if stop:
                    training.stop()
        return training.result(stop.signal)
    except BaseException:
        training.abandon()
        raise
    finally:
        training.close()


class _Training:
    """A call of `train`: what it hands from round to round."""

    def __init__(
        self,
        process: FederatedProcess,
        population: Population,
        settings: Settings,
        evaluate: Evaluator,
        ledger: communication.Ledger,
        folder: Path | None,
        config: Mapping[str, Any],
    ):
        self._process, self._num_clients, self._settings = process, len(population), settings
        self._evaluate, self._ledger, self._measured = evaluate, ledger, _measured(process)
        self._folder, self._config = folder, config
        self._checkpoints: Checkpoints | None = None
        self._records: Records | None = None
        if folder is not None:
            self._checkpoints = Checkpoints(path_in(folder), config)
        in_memory = settings.states_in_memory
        self.states = ClientStates(process, settings.seed, self._checkpoints, in_memory=in_memory)
        self._examples = Prepared(process, population, in_memory=in_memory)
        self._writer = Writer()
        self._rows: list[dict[str, Any]] = []
        self._evaluation: Evaluation | None = None
        self._stopping = self._reached = False

    def begin(self, start: Start | None) -> None:
        """Initialises the server's state, or reads it where the folder's run stopped."""
        process, settings = self._process, self._settings
        self._state, self._done = process.initialize(), 0
        self._before = 0 if start is None else start.rounds
        if start is not None:
            self._state = start.server_state(process, self._state)
        if self._folder is not None and self._checkpoints is not None:
            if (saved := self._checkpoints.latest_round()) is not None:
                self._state = self._checkpoints.server_state(like=self._state)
                self._done = saved
                check_length(self._folder, saved, settings)
            columns = _columns(process, self._evaluate)
            if 0 < self._done < settings.rounds and self._done % settings.eval_every:
                _drop_evaluation(self._checkpoints, columns, self._done)
            self._records = Records(
                self._folder,
                columns,
                self._checkpoints,
                tracking=settings.tracking,
                config=self._config,
            )
            self._reached = self._done > 0 and _is_reached(settings, self._records.last_row())
        if start is not None and not self._done:
            own = start.client_states(process, settings.seed, self._state, self._num_clients)
            self.states.put(0, own)

    def stop(self) -> None:
        """Has no further round begun, and the last one kept if it was over before it was known."""
        if self._records is not None and not self._stopping:
            self._writer.wait()
            self.states.write(self._done, self.states.take_changed())
            self._records.save(self._done, self._state)
        self._stopping = True

    def is_over(self) -> bool:
        """Whether no further round is to be begun."""
        return self._done == self._settings.rounds or self._stopping or self._reached

    def round(
        self, schedule: Schedule, stop: StopRequest, on_evaluation: OnEvaluation | None
    ) -> tuple[dict[str, Any], float]:
        """Trains a cohort, evaluates and keeps what is due; returns the row and the seconds."""
        times = [time.perf_counter()]
        row = self._train(schedule(self._before + self._done))
        times.append(time.perf_counter())
        done, settings = self._done, self._settings
        self._evaluation = None
        if done == settings.rounds or done % settings.eval_every == 0:
            self._evaluation = self._evaluate(self._state, self.states)
            _check_finite(done, self._evaluation.row())
            row |= self._evaluation.row()
            if on_evaluation is not None:
                on_evaluation(done, self._evaluation)
        self._reached = _is_reached(settings, row)
        times.append(time.perf_counter())
        self._rows.append(row)
        self._stopping = bool(stop)
        if self._records is not None:
            self._keep(self._records, row, times)
        return row, time.perf_counter() - times[0]

    def _train(self, cohort: Sequence[int]) -> dict[str, Any]:
        n = self._num_clients
        if len({*cohort}) < len(cohort) or not all(0 <= client < n for client in cohort):
            raise ValueError(f"A round's clients are different ones from 0 to {n - 1}: {cohort}.")
        inputs = cohort_inputs(
            cohort,
            self._before + self._done,
            self._settings.seed,
            self._examples,
            lambda client: self.states.get(client, self._state),
        )
        self._state, metrics, kept = run_round(self._process, self._state, inputs)
        self._done += 1
        row = _training_row(self._done, len(cohort), metrics, self._measured, self._ledger)
        _check_finite(self._done, row)
        _check_states(self._done, self._state, kept)
        self.states.put(self._done, ((int(k["client"]), k["state"]) for k in kept))
        return row

    def _keep(self, records: Records, row: Mapping[str, Any], times: Sequence[float]) -> None:
        """Has the round written, with a checkpoint of all that was kept where one is due."""
        done, state, evaluation = self._done, self._state, self._evaluation
        due = self.is_over() or done % self._settings.checkpoint_every == 0
        changed = self.states.take_changed() if due else []

        def save() -> None:
            began = time.perf_counter()
            records.put(row, [] if evaluation is None else evaluation.client_rows(done))
            if due:
                self.states.write(done, changed)
                records.save(done, state)
            records.put_times(done, [*np.diff(times), time.perf_counter() - began])

        self._writer.submit(save)
        if not self._settings.states_in_memory:  # The next round puts states itself.
            self._writer.wait()

    def result(self, stopped_by: signal.Signals | None) -> Result:
        """Returns what training gave, when all is written."""
        self._writer.wait()
        ended = self._done == self._settings.rounds or self._reached
        if ended and self._evaluation is None:  # The run was complete before.
            self._evaluation = self._evaluate(self._state, self.states)
        return Result(
            self._state,
            self.states,
            self._done,
            self._evaluation if ended else None,
            self._rows,
            stopped_by,
            self._reached,
        )

    def abandon(self) -> None:
        """Ends the writing, and closes the clients' states."""
        self._writer.close()
        self.states.close()

    def close(self) -> None:
        """Ends the writing."""
        self._writer.close()
        if self._records is not None:
            self._records.close()


def _is_reached(settings: Settings, row: Mapping[str, Any]) -> bool:
    """Whether a round's row says that the goal is reached; an evaluation out of turn says nothing.

    Else a run that was shorter at first, and evaluated at its end, would end elsewhere.
    """
    goal = settings.goal
    if goal is None or int(row["round"]) % settings.eval_every:
        return False
    # A sample may have no examples for it.
    return float(row.get(column(goal.split, "accuracy", "mean")) or 0) >= goal.accuracy


def check_length(folder: Path, done: int, settings: Settings) -> None:
    """Raises CheckpointError if a run has more rounds than are asked for."""
    if done > settings.rounds:
        raise CheckpointError(
            f"The run in {folder} has {done} rounds already, more than the {settings.rounds} asked "
            "for. Give another output folder."
        )


def _drop_evaluation(checkpoints: Checkpoints, columns: Sequence[str], done: int) -> None:
    """Forgets an evaluation that was due only because the run ended there, which it does not."""
    ((_, text),) = [row for row in checkpoints.rows("metrics") if row[0] == done]
    kept = columns.index("bytes_down") + 1
    values = text.rstrip("\n").split(",")[:kept] + [""] * (len(columns) - kept)
    checkpoints.put_row("metrics", done, ",".join(values) + "\n")
    checkpoints.put_row("clients", done, "")


def _training_row(
    done: int,
    num_clients: int,
    metrics: Mapping[str, Any],
    measured: Sequence[str],
    ledger: communication.Ledger,
) -> dict[str, Any]:
    row: dict[str, Any] = {"round": done, "clients": num_clients}
    row |= {f"train_{name}": np.asarray(value).item() for name, value in metrics["train"].items()}
    row |= {f"server_{name}": np.asarray(metrics["server_step"][name]).item() for name in measured}
    row["bytes_up"] = ledger.bytes_up * num_clients
    row["bytes_down"] = ledger.bytes_down * num_clients
    return row


def _check_finite(done: int, row: Mapping[str, Any]) -> None:
    for name, value in row.items():
        if not math.isfinite(value):
            raise DivergedError(
                f"{name} of round {done} is {value}: training diverged. Lower the client learning "
                "rate, or clip gradients."
            )


def _check_states(done: int, state: ServerState, kept: Sequence[Mapping[str, Any]]) -> None:
    """Refuses numbers that no evaluation may see, before they become a checkpoint."""
    owners = [("server", state), *((f"client {k['client']}", k["state"]) for k in kept)]
    for owner, values in owners:
        for value in map(np.asarray, tf.nest.flatten(values)):
            if value.dtype.kind == "f" and not np.isfinite(value).all():
                raise DivergedError(
                    f"The state of the {owner} after round {done} is not finite: training "
                    "diverged. Lower the client learning rate, or clip gradients."
                )


def _measured(process: FederatedProcess) -> list[str]:
    """The names of the single numbers among what the server step measures."""
    metrics_type = process.next.type_signature.result.metrics.member
    if "server_step" not in tff.structure.name_list_with_nones(metrics_type):
        return []  # Nothing travels.
    measurements = metrics_type["server_step"]
    if not isinstance(measurements, tff.StructType):
        return []
    named = tff.structure.iter_elements(measurements)
    scalar = (tff.TensorType(np.int32), tff.TensorType(np.float32))
    return [name for name, one in named if name and one in scalar]


def _columns(process: FederatedProcess, evaluate: Evaluator) -> list[str]:
    metrics_type = process.next.type_signature.result.metrics.member
    columns = ["round", "clients"]
    columns += [f"train_{name}" for name, _ in tff.structure.iter_elements(metrics_type["train"])]
    columns += [f"server_{name}" for name in _measured(process)]
    columns += ["bytes_up", "bytes_down"]
    return columns + evaluate.columns()
