"""From flags to what they name: data, clients, network, local training, schedule."""

import contextlib
import dataclasses
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from absl import flags

from experiments import adversaries, aggregation, at_server, dealing, training_flags
from experiments.defaults import DEFAULTS, Defaults
from experiments.flags import data as data_flags
from experiments.flags import method as method_flags
from experiments.flags import run as run_flags
from experiments.flags import scoped
from tff_het import datasets, methods, partitions
from tff_het.clients import Population
from tff_het.evaluation import communication
from tff_het.learning import batching
from tff_het.learning.client_work import LocalTraining
from tff_het.learning.process import FederatedProcess
from tff_het.models import architectures
from tff_het.models.layers import Layers
from tff_het.simulation import cohorts, loop, records
from tff_het.simulation import start as starts

# Flags that do not define a run: with others, a run may go on where it stopped.
NOT_OF_THE_RUN = (
    "rounds",
    "new_test",
    "delta",
    "runtime",
    "clients_in_parallel",
    "workers",
    "worker_deadline",
    "shared_examples_dir",
    "output_dir",
    "data_dir",
    "method",
    "checkpoint_every",
    "keep_checkpoints",
    "client_store",
    "tracking",
    "start_from",
)

# Flag -> the option of methods that it sets.
_METHOD_OPTIONS = {
    "local_layers": "local",
    "local_loss": "local_loss",
    "local_loss_weight": "local_loss_weight",
    "norm_weights": "norm_weights",
    "proximal_strength": "proximal_strength",
    "q": "q",
    "alpha_over_factors": "alpha_over_factors",
    "temperature": "temperature",
    "posterior_rate": "posterior_rate",
    "evaluation_samples": "evaluation_samples",
    "keep_globals": "keep_globals",
    "cgau_variant": "variant",
    "condition_output": "condition_output",
    "ensemble_dropout_samples": "dropout_samples",
}


@dataclasses.dataclass(frozen=True)
class Setup:
    """What all methods of a program have in common.

    The server holds `initial` examples to train on first and others for `selection`; None without.
    """

    dataset: datasets.Dataset
    partition: partitions.Partition
    population: Population
    architecture: architectures.Architecture
    training: LocalTraining
    schedule: cohorts.Schedule
    settings: loop.Settings
    start: starts.Start | None
    new_test: bool
    initial: datasets.Examples | None
    selection: datasets.Examples | None

    @property
    def common_test(self) -> datasets.Examples | None:
        """What a global model is tested on; None: all clients' test examples, if that is all."""
        covered = sum(len(part) for part in self.partition.test) == self.partition.num_test
        return None if covered else self.dataset.test


@dataclasses.dataclass(frozen=True)
class Course:
    """Who trains under one method, and what travels.

    Attributes:
      population: The clients, and possibly others behind them that only train.
      schedule: Who trains in a round.
      ledger: What one of them sends and receives in a round.
      data_bytes: What of examples is sent to one place before the first round.
    """

    population: Population
    schedule: cohorts.Schedule
    ledger: communication.Ledger
    data_bytes: int = 0

    def steps(self, rounds: Iterable[int], training: LocalTraining) -> int:
        """Returns how many steps all that train in a run's rounds take together."""

        def of_client(client: int, num_rounds: int) -> int:
            if training.acquisition is None:
                trained_on = {int(self.population.num_train_examples[client]): num_rounds}
            else:
                labels = self.population[client].train["y"]
                trained_on = Counter(training.acquisition.batch_sizes(labels, num_rounds))
            return sum(times * _num_steps(num, training) for num, times in trained_on.items())

        took_part = Counter(client for number in rounds for client in self.schedule(number))
        return sum(of_client(*pair) for pair in took_part.items())


def _num_steps(num_examples: int, training: LocalTraining) -> int:
    return int(
        batching.num_steps(
            num_examples,
            training.batch_size,
            epochs=training.epochs,
            steps=training.steps,
            at_most_one_pass=training.at_most_one_pass,
        )
    )


def fill_in_defaults() -> None:
    """Gives the flags that depend on the data set their values."""
    chosen = DEFAULTS[data_flags.DATASET.value]
    flat = dataclasses.asdict(chosen)
    if flags.FLAGS.local_steps is not None:
        if flags.FLAGS.local_epochs is not None:
            raise ValueError("Give either --local_epochs or --local_steps, not both.")
        flat.pop("local_epochs")
    # A partition of another kind shares neither the data set's number of clients nor its groups.
    if flags.FLAGS.partition not in (None, chosen.partition):
        flat["num_clients"] = chosen.num_clients or Defaults.num_clients
        flat["group_column"] = None
    for name, value in flat.items():
        if flags.FLAGS[name].value is None:
            flags.FLAGS[name].value = value


@contextlib.contextmanager
def setup_with(values: Mapping[str, str]) -> Iterator[Setup]:
    """Makes what these flags name; inside, all others have their defaults.

    Args:
      values: The flags' texts by name, as they stand on a command line.

    Raises:
      ValueError: If the flags do not exist, contradict each other or do not fit the data.
      FileNotFoundError: If files are missing.
    """
    with scoped.only(values, groups=(data_flags, method_flags, run_flags)):
        fill_in_defaults()
        yield setup()


def setup() -> Setup:
    """Makes what the flags name.

    Raises:
      ValueError: If flags contradict each other or do not fit the data.
      FileNotFoundError: If files are missing.
    """
    seed = run_flags.SEED.value
    training = training_flags.local_training()
    dealt = dealing.deal()
    dataset, partition = dealt.dataset, dealt.partition
    protected = adversaries.columns(dataset)
    population = Population.from_partition(
        dataset,
        partition,
        validation_fraction=data_flags.VALIDATION_FRACTION.value,
        seed=seed,
        columns=(*_columns(dataset), *protected),
    )
    selection = at_server.selection(dealt, population.columns)
    architecture = architectures.make(
        method_flags.MODEL.value,
        population.element_spec,
        dataset.num_classes,
        statistics=dataset.statistics() if method_flags.STANDARDIZE.value else None,
        vocabulary_size=len(dataset.vocabulary),
    )
    architecture = dataclasses.replace(
        architecture,
        loss=training_flags.loss(dataset.num_classes),
        initialization=method_flags.INITIALIZATION.value,
        kind=Layers(bias=method_flags.BIAS.value),
        local_statistics=method_flags.LOCAL_STATISTICS.value,
    )
    architecture = adversaries.attach(architecture, protected)
    start = _start(dataset, population, at_server.fingerprint(selection))
    return Setup(
        dataset=dataset,
        partition=partition,
        population=population,
        architecture=architecture,
        training=training,
        schedule=_schedule(len(population), seed, start),
        settings=loop.Settings(
            rounds=run_flags.ROUNDS.value,
            seed=seed,
            eval_every=run_flags.EVAL_EVERY.value,
            checkpoint_every=run_flags.CHECKPOINT_EVERY.value,
            keep_checkpoints=run_flags.KEEP_CHECKPOINTS.value,
            states_in_memory=run_flags.CLIENT_STORE.value == "memory",
            tracking=tuple(run_flags.TRACKING.value),
            goal=_goal(),
        ),
        start=start,
        new_test=run_flags.NEW_TEST.value,
        initial=at_server.initial(dealt, population.columns),
        selection=selection,
    )


def processes(made: Setup) -> dict[str, FederatedProcess]:
    """Builds the process of each method that was asked for.

    Raises:
      ValueError: If a method does not exist or a flag fits none of them.
    """
    names = method_flags.METHOD.value
    if not names or len(set(names)) < len(names):
        raise ValueError(f"--method needs one or more different methods, found {names}.")
    taken = {method: methods.options(method) for method in names}
    options = {option: flags.FLAGS[flag].value for flag, option in _METHOD_OPTIONS.items()}
    options["server_optimizer"] = training_flags.server_optimizer()
    options["factors"] = training_flags.factors()
    options = {option: value for option, value in options.items() if value is not None}
    for option in options:
        if not any(option in accepted for accepted in taken.values()):
            flag = {option: flag for flag, option in _METHOD_OPTIONS.items()}.get(option, option)
            raise ValueError(f"--{flag} has no meaning for {', '.join(names)}.")
    aggregator = aggregation.factory(made, taken)
    if aggregator is not None:
        options["aggregator"] = aggregator
    at_server.check(names, taken, made.selection)
    _check_pooled(names, made)
    # What the data say, for methods that ask.
    options["num_clients"] = len(made.population)
    options["selection"] = made.selection
    built = {
        method: methods.build(
            method,
            made.architecture,
            made.training.within(_most_examples(method, made)),
            seed=run_flags.SEED.value,
            **{name: value for name, value in options.items() if name in taken[method]},
        )
        for method in names
    }
    aggregation.check(built)
    if made.start is not None:
        for process in built.values():
            made.start.check(process.model)
    return built


def course(made: Setup, method: str, process: FederatedProcess) -> Course:
    """Returns who trains under a method."""
    if not methods.trains_on_pooled_examples(method):
        return Course(made.population, made.schedule, communication.ledger(process))
    if method_flags.POOLED.value == "server":
        assert made.initial is not None
        return Course(
            at_server.with_server(made.population, made.initial),
            cohorts.always(len(made.population)),
            communication.staying_put(process),
        )
    return Course(
        made.population.with_pooled(),
        cohorts.always(len(made.population)),
        communication.staying_put(process),
        data_bytes=communication.compressed_bytes(made.population),
    )


def config(made: Setup, method: str) -> dict[str, Any]:
    """Returns what defines a run: a folder that holds another one is not continued."""
    values = {name: value for name, value in flag_values().items() if name not in NOT_OF_THE_RUN}
    start = None if made.start is None else made.start.fingerprint()
    return values | {
        "method": method,
        "data_fingerprint": made.dataset.fingerprint(),
        "start_fingerprint": start,
    }


def flag_values() -> dict[str, Any]:
    """Returns all of the program's own flags, by name."""
    modules = (data_flags, method_flags, run_flags)
    found = flags.FLAGS.flags_by_module_dict()
    return {flag.name: flag.value for module in modules for flag in found[module.__name__]}


def flagfile(method: str) -> str:
    """Returns the text of a flagfile that makes this method's run again."""
    values = flag_values() | {"method": [method]}
    lines = []
    for name, value in values.items():
        if isinstance(value, bool):
            lines.append(f"--{'' if value else 'no'}{name}")
        elif value is not None:
            text = ",".join(value) if isinstance(value, list) else value
            lines.append(f"--{name}={text}")
    return "\n".join(lines) + "\n"


def _columns(dataset: datasets.Dataset) -> tuple[str, ...]:
    """What clients hold of the data set: what the network reads, and the classes."""
    model = method_flags.MODEL.value
    read = architectures.inputs(model)
    if missing := [column for column in read if column not in dataset.train]:
        raise ValueError(
            f"--model={model} reads {', '.join(read)}; data set {dataset.name!r} has no "
            f"{', '.join(missing)}. Choose another --model or --dataset."
        )
    return (*read, "y")


def _most_examples(method: str, made: Setup) -> int:
    """Returns how many examples the largest of those has that train under a method."""
    sizes = made.population.num_train_examples
    if not methods.trains_on_pooled_examples(method):
        return int(sizes.max())
    if method_flags.POOLED.value == "clients":
        return int(sizes.sum())
    assert made.initial is not None
    return len(made.initial["y"])


def _schedule(num_clients: int, seed: int, start: starts.Start | None) -> cohorts.Schedule:
    cohort_size = run_flags.CLIENTS_PER_ROUND.value or num_clients
    if run_flags.SAMPLING.value == "in_turn":
        return cohorts.in_turn(num_clients, cohort_size, 0 if start is None else start.rounds)
    return cohorts.uniform(num_clients, cohort_size, seed)


def _goal() -> loop.Goal | None:
    accuracy, split = run_flags.GOAL_ACCURACY.value, run_flags.GOAL_SELECTION.value
    if accuracy is None:
        if split != "validation":
            raise ValueError("--goal_selection says how to judge --goal_accuracy: give that too.")
        return None
    if split == "validation" and not data_flags.VALIDATION_FRACTION.value:
        raise ValueError(
            "--goal_accuracy is evaluated on validation examples: give --validation_fraction (0.1, "
            "say), or --goal_selection=test to do as the paper."
        )
    return loop.Goal(accuracy, split)


def _check_pooled(names: list[str], made: Setup) -> None:
    if method_flags.POOLED.value == "clients":
        return
    if not any(methods.trains_on_pooled_examples(name) for name in names):
        raise ValueError(f"--pooled=server has no meaning for {', '.join(names)}.")
    if made.initial is None:
        raise ValueError(
            "--pooled=server trains on examples at the server, which has none: give "
            "--initial_examples (400, say)."
        )


def _start(
    dataset: datasets.Dataset, population: Population, held_out: str | None
) -> starts.Start | None:
    if run_flags.START_FROM.value is None:
        return None
    folder = Path(run_flags.START_FROM.value)
    start = starts.read(folder)
    theirs = records.read_json(folder / "summary.json")
    needed = ("dataset", "data_fingerprint", "validation_fingerprint")
    if missing := [name for name in needed if name not in theirs]:
        raise ValueError(f"{folder / 'summary.json'} is damaged (no {', '.join(missing)}).")
    ours = population.validation_fingerprint()
    same_data = theirs["data_fingerprint"] == dataset.fingerprint()
    if ours and same_data and theirs["validation_fingerprint"] != ours:
        raise ValueError(
            f"The run in {folder} set other examples apart for validation, so it has trained on "
            "some that this one would be judged by. Give the same seed, partition and "
            "--validation_fraction."
        )
    # Of an older run, too, which held out none.
    same_selection = theirs.get("selection_fingerprint") == held_out
    if held_out and theirs["dataset"] == dataset.name and not same_selection:
        raise ValueError(
            f"The run in {folder} held out other examples at the server, so it has trained on some "
            "that models would be judged by here. Give the same seed, --initial_examples and "
            "--selection_examples."
        )
    return start
