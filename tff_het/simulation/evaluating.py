"""What is evaluated in a round, and the numbers that are kept of it."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tff_het.clients import Population
from tff_het.evaluation import statistics
from tff_het.evaluation.local_test import (
    GlobalTest,
    LocalTest,
    global_test,
    has_global_model,
    local_tests,
)
from tff_het.learning.process import FederatedProcess, ServerState
from tff_het.simulation.client_states import ClientStates

# What is said of all clients' values, by metric.
_STATISTICS = {
    "accuracy": ("mean", "weighted_mean", "std", "min", "worst_decile"),
    "loss": ("mean", "weighted_mean"),
}


class Evaluation(NamedTuple):
    """Every client with its own model on its own data, and the global model where there is one."""

    local: Mapping[str, LocalTest]  # By split: test, and validation where clients have some.
    global_test: GlobalTest | None

    def row(self) -> dict[str, float]:
        """The numbers by column."""
        row: dict[str, float] = {}
        for split, result in self.local.items():
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
    """Evaluates all clients, whether they were sampled or not."""

    def __init__(
        self,
        process: FederatedProcess,
        population: Population,
        test_examples: Mapping[str, np.ndarray] | None,
        seed: int = 0,
    ):
        self._process = process
        self._seed = seed
        self._population = population
        self._test_examples = test_examples
        has_validation = any(len(client.validation["y"]) for client in population)
        self.splits = ("test", "validation") if has_validation else ("test",)
        self.has_global_model = has_global_model(process)
        logits = process.output_specs().get("logits")
        is_binary = logits is not None and logits.shape[-1] == 2
        self._splits_with_auc = [s for s in self.splits if is_binary and _has_both(population, s)]

    def __call__(self, state: ServerState, states: ClientStates) -> Evaluation:
        def test(splits: Sequence[str], adapt: bool = True) -> Mapping[str, LocalTest]:
            return local_tests(
                self._process,
                state,
                self._population,
                lambda client: states.get(client, state),
                splits,
                seed=self._seed,
                adapt=adapt,
            )

        local = test(self.splits)
        if not self.has_global_model:
            return Evaluation(local, None)
        if self._test_examples is not None:
            return Evaluation(local, global_test(self._process, state, self._test_examples))
        # What clients were tested with is the global model, unless they adapt it.
        common = test(["test"], adapt=False) if self._process.adapts else local
        return Evaluation(local, _pooled(common["test"]))

    def columns(self) -> list[str]:
        """The names in `Evaluation.row`."""
        columns = []
        for split in self.splits:
            for name, chosen in _STATISTICS.items():
                columns += [column(split, name, key) for key in chosen]
            sizes = np.array([len(getattr(client, split)["y"]) for client in self._population])
            of_groups = statistics.by_group(np.zeros(len(sizes)), sizes, self._population.groups)
            columns += [column(split, "accuracy", key) for key in of_groups]
            if split in self._splits_with_auc:
                columns.append(column(split, "auc", "pooled"))
        if self.has_global_model:
            columns += ["global_test_accuracy", "global_test_loss"]
        return columns


def _has_both(population: Population, split: str) -> bool:
    """Whether both classes of a binary task have examples."""
    return len({label for client in population for label in getattr(client, split)["y"]}) == 2


def _pooled(local: LocalTest) -> GlobalTest:
    """The global model on all clients' test examples, which it has just been tested on."""
    accuracy = statistics.distribution(local.accuracy, local.num_examples)["weighted_mean"]
    loss = statistics.distribution(local.loss, local.num_examples)["weighted_mean"]
    return GlobalTest(int(local.num_examples.sum()), accuracy, loss)


def column(split: str, metric: str, key: str) -> str:
    """The name of a number in `Evaluation.row`."""
    return f"local_{split}_{metric}_{key}"
