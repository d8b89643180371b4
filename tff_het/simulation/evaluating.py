"""What is evaluated in a round, and the numbers that are kept of it."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tff_het.clients import Population
from tff_het.evaluation import statistics
from tff_het.evaluation.judging import Judged
from tff_het.evaluation.local_test import LocalTest, global_test, has_global_model, local_tests
from tff_het.learning.process import FederatedProcess, ServerState
from tff_het.simulation.client_states import ClientStates
from tff_het.simulation.cohorts import Schedule

SAMPLED = "evaluated_clients"
# What is said of all clients' values, by metric.
_STATISTICS = {
    "accuracy": ("mean", "weighted_mean", "std", "min", "worst_decile"),
    "loss": ("mean", "weighted_mean"),
}


class Evaluation(NamedTuple):
    """Clients with their own models on their own data, and the global model where there is one."""

    local: Mapping[str, LocalTest]  # By split: test, and validation where clients have some.
    global_test: Judged | None
    clients: Sequence[int]  # Places of those evaluated.
    is_sampled: bool  # Whether there are others.
    state: ServerState  # What was evaluated, with the clients' states.
    states: ClientStates

    def row(self) -> dict[str, float]:
        """The numbers by column."""
        row: dict[str, float] = {SAMPLED: len(self.clients)} if self.is_sampled else {}
        for split, result in self.local.items():
            if self.is_sampled and not result.num_examples.any():
                continue  # None of these happens to have examples: nothing is known.
            for name, chosen in _STATISTICS.items():
                values = statistics.distribution(getattr(result, name), result.num_examples)
                row |= {column(split, name, key): values[key] for key in chosen}
            row |= {
                column(split, "accuracy", key): value
                for key, value in statistics.by_group(
                    result.accuracy, result.num_examples, result.groups
                ).items()
            }
            if result.pooled_auc is not None:
                row[column(split, "auc", "pooled")] = result.pooled_auc
        if self.global_test is not None:
            row["global_test_accuracy"] = self.global_test.accuracy
            row["global_test_loss"] = self.global_test.loss
        return row

    def client_rows(self, done: int) -> Iterator[dict[str, Any]]:
        """A row for each client and split, after `done` rounds."""
        for split, result in self.local.items():
            for index, client in enumerate(result.client_ids):
                yield {
                    "round": done,
                    "split": split,
                    "client": client,
                    "group": result.groups[index],
                    "num_examples": result.num_examples[index],
                    "accuracy": result.accuracy[index],
                    "loss": result.loss[index],
                    "rounds_trained": result.rounds[index],
                }


class Evaluator:
    """Evaluates clients, whether they have trained or not: all, or some drawn for each round."""

    def __init__(
        self,
        process: FederatedProcess,
        population: Population,
        test_examples: Mapping[str, np.ndarray] | None,
        seed: int = 0,
        cohorts: Schedule | None = None,
    ):
        """Prepares evaluations of a round's clients; of all by default.

        Raises:
          ValueError: If no client has a test example.
        """
        if not population.num_examples("test").any():
            raise ValueError("No client has a test example: there is nothing to evaluate on.")
        self._cohorts = cohorts
        self._process = process
        self._seed = seed
        self._population = population
        self._test_examples = test_examples
        has_validation = population.num_examples("validation").any()
        self.splits = ("test", "validation") if has_validation else ("test",)
        self.has_global_model = has_global_model(process)
        logits = process.output_specs().get("logits")
        is_binary = logits is not None and logits.shape[-1] == 2
        self._splits_with_auc = [s for s in self.splits if is_binary and _has_both(population, s)]

    def __call__(self, state: ServerState, states: ClientStates) -> Evaluation:
        everyone: Sequence[int] = range(len(self._population))
        clients = everyone
        if self._cohorts is not None:
            clients, n = self._cohorts(int(state.round)), len(everyone)
            if not 0 < len(clients) == len({*clients}) or not all(0 <= c < n for c in clients):
                expected = f"Clients evaluated are one or more different ones from 0 to {n - 1}"
                raise ValueError(f"{expected}: {clients}.")

        def test(splits: Sequence[str], adapt: bool = True) -> Mapping[str, LocalTest]:
            return local_tests(
                self._process,
                state,
                self._population,
                lambda client: states.get(client, state),
                splits,
                seed=self._seed,
                adapt=adapt,
                clients=clients,
            )

        local, common = test(self.splits), None
        if self.has_global_model and self._test_examples is not None:
            common = global_test(self._process, state, self._test_examples)
        elif self.has_global_model:
            # What clients were tested with is the global model, unless they adapt it.
            unadapted = test(["test"], adapt=False) if self._process.adapts else local
            common = _pooled(unadapted["test"])
        return Evaluation(local, common, clients, clients is not everyone, state, states)

    def columns(self) -> list[str]:
        """The names in `Evaluation.row`."""
        columns = [] if self._cohorts is None else [SAMPLED]
        for split in self.splits:
            for name, chosen in _STATISTICS.items():
                columns += [column(split, name, key) for key in chosen]
            sizes = self._population.num_examples(split)
            of_groups = statistics.by_group(np.zeros(len(sizes)), sizes, self._population.groups)
            columns += [column(split, "accuracy", key) for key in of_groups]
            if split in self._splits_with_auc:
                columns.append(column(split, "auc", "pooled"))
        if self.has_global_model:
            columns += ["global_test_accuracy", "global_test_loss"]
        return columns


def _has_both(population: Population, split: str) -> bool:
    """Whether both classes of a binary task have examples."""
    return len(np.unique(population.column(split, "y"))) == 2


def _pooled(local: LocalTest) -> Judged | None:
    """The global model on all the clients' test examples, which it has just been tested on."""
    if not local.num_examples.any():
        return None
    accuracy = statistics.distribution(local.accuracy, local.num_examples)["weighted_mean"]
    loss = statistics.distribution(local.loss, local.num_examples)["weighted_mean"]
    return Judged(accuracy, loss)


def column(split: str, metric: str, key: str) -> str:
    """The name of a number in `Evaluation.row`."""
    return f"local_{split}_{metric}_{key}"
