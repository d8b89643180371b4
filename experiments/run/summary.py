"""The summary of one finished run."""

import functools
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tensorflow as tf

from experiments.run import aggregation
from experiments.run.processes import Course
from experiments.run.setup import Setup
from tff_het.backend.names import tff
from tff_het.evaluation import acquired as acquisitions
from tff_het.evaluation import communication, ensemble, factors, statistics
from tff_het.learning.process import FederatedProcess
from tff_het.simulation import loop, records


def of_run(
    made: Setup,
    course: Course,
    result: loop.Result,
    used: Mapping[str, factors.Factors],
    table: Path,
) -> dict[str, Any]:
    """Returns what `summary.json` holds; the same run gives the same bytes.

    `used` are the factors that clients use, by layer, and `table` is the run's `metrics.csv`.
    """
    assert result.evaluation is not None
    rounds = range(made.rounds_before, made.rounds_before + result.rounds)
    trainers, ledger = course.trainers, course.ledger
    client_rounds = sum(len(trainers.schedule(round_num)) for round_num in rounds)
    values: dict[str, Any] = {
        "method": course.method,
        "dataset": made.dataset.name,
        "partition": made.partition.name,
        "model": made.architecture.name,
        "seed": made.settings.seed,
        "rounds": result.rounds,
        "rounds_before": made.rounds_before,
        "num_clients": len(made.population),
        "client_rounds": client_rounds,
    }
    if result.evaluation.is_sampled:
        values["evaluated_clients"] = len(result.evaluation.clients)
    for split, local in result.evaluation.local.items():
        if not local.num_examples.any():
            continue  # Of a sample; otherwise the loop has refused it.
        accuracy = statistics.distribution(local.accuracy, local.num_examples)
        loss = statistics.distribution(local.loss, local.num_examples)
        accuracy |= statistics.by_group(local.accuracy, local.num_examples, local.groups)
        values |= {f"local_{split}_accuracy_{name}": value for name, value in accuracy.items()}
        values |= {f"local_{split}_loss_{n}": loss[n] for n in ("mean", "weighted_mean", "std")}
        if local.pooled_auc is not None:
            values[f"local_{split}_auc_pooled"] = local.pooled_auc
    if (found := result.evaluation.global_test) is not None:
        values |= {"global_test_accuracy": found.accuracy, "global_test_loss": found.loss}
    if made.config.run.new_test:
        values |= _new_test(made, course.process, result)
    values |= factors.summary(used) | _best(table)
    if made.settings.goal is not None:
        values["goal_reached"] = int(result.goal_reached)
    values |= aggregation.promise(made, result.rounds)
    if course.process.warnings:
        values["warnings"] = list(course.process.warnings)
    return values | {
        "parameters_total": ledger.parameters_total,
        "parameters_sent": ledger.parameters_sent,
        "parameters_communicated": 2 * ledger.parameters_sent * client_rounds,
        "bytes_up_total": course.data_bytes + ledger.bytes_up * client_rounds,
        "bytes_down_total": ledger.bytes_down * client_rounds,
        "bytes_up_total_metrics": ledger.metrics_bytes_up * client_rounds,
        "data_source": made.dataset.source,
        "data_fingerprint": made.dataset.fingerprint(),
        "validation_fingerprint": made.population.validation_fingerprint(),
        "selection_fingerprint": made.selection_fingerprint,
        "python": platform.python_version(),
        "tensorflow": tf.__version__,
        "tensorflow_federated": tff.__version__,
    }


def acquired(made: Setup, course: Course, result: loop.Result) -> str:
    """Returns as CSV how many examples of each class each client took in each acquisition."""
    settings, num_classes = made.training.acquisition, made.dataset.num_classes
    assert settings is not None
    rows: list[list[Any]] = []
    for index, client in enumerate(course.trainers.population):
        state = result.client_states.get(index, result.state)
        counts = acquisitions.class_counts(settings, state, client.train["y"], num_classes)
        rows += ([client.id, number, *row] for number, row in enumerate(counts, start=1))
    head = ["client", "acquisition", *(f"class_{label}" for label in range(num_classes))]
    return records.as_csv([head, *rows])


def _new_test(made: Setup, process: FederatedProcess, result: loop.Result) -> dict[str, Any]:
    """The ensemble of all clients' models, and what it takes to bring them to one place."""
    state_of = functools.partial(result.client_states.get, server_state=result.state)
    of = (process, result.state, made.population, state_of, made.dataset.test)
    found = ensemble.new_test(*of, seed=made.settings.seed)
    numbers, sent = communication.sending_local_models(process, len(made.population))
    names = ("accuracy_average", "accuracy_vote", "loss", "num_examples")
    return {
        **{f"new_test_{name}": getattr(found, name) for name in names},
        "new_test_parameters": numbers,
        "new_test_bytes_up": sent,
    }


def _best(table: Path) -> dict[str, Any]:
    """What was measured in the round with the lowest loss on all clients' validation examples."""
    loss = "local_validation_loss_weighted_mean"
    rows = [row for row in records.read_table(table) if row.get(loss)]
    if not rows:
        return {}
    best = min(rows, key=lambda row: float(row[loss]))  # The first of equals.
    measured = {k: float(v) for k, v in best.items() if v and k[:6] in ("local_", "global")}
    return {"best_round": int(best["round"])} | {f"best_{k}": v for k, v in measured.items()}
