"""The summary of one finished run."""

import platform
from typing import Any

import tensorflow as tf
import tensorflow_federated as tff

from experiments.configure import Course, Setup
from tff_het.evaluation import statistics
from tff_het.simulation import loop


def of_run(method: str, made: Setup, result: loop.Result, course: Course) -> dict[str, Any]:
    """Returns what `summary.json` holds; the same run gives the same bytes."""
    assert result.evaluation is not None
    ledger = course.ledger
    cohorts = [len(course.schedule(round_num)) for round_num in range(result.rounds)]
    steps = sum(course.steps(round_num, made.training) for round_num in range(result.rounds))
    values: dict[str, Any] = {
        "method": method,
        "dataset": made.dataset.name,
        "partition": made.partition.name,
        "model": made.architecture.name,
        "seed": made.settings.seed,
        "rounds": result.rounds,
        "num_clients": len(made.population),
        "client_rounds": sum(cohorts),
        "steps_total": steps,
        "steps_per_client_round": steps / sum(cohorts),
    }
    for split, local in result.evaluation.local.items():
        accuracy = statistics.distribution(local.accuracy, local.num_examples)
        loss = statistics.distribution(local.loss, local.num_examples)
        values |= {f"local_{split}_accuracy_{name}": value for name, value in accuracy.items()}
        values |= {
            f"local_{split}_loss_{name}": loss[name] for name in ("mean", "weighted_mean", "std")
        }
    if result.evaluation.global_test is not None:
        values["global_test_accuracy"] = result.evaluation.global_test.accuracy
        values["global_test_loss"] = result.evaluation.global_test.loss
    values |= {
        "parameters_total": ledger.parameters_total,
        "parameters_sent": ledger.parameters_sent,
        "bytes_up_total": course.data_bytes + ledger.bytes_up * sum(cohorts),
        "bytes_down_total": ledger.bytes_down * sum(cohorts),
        "bytes_up_total_metrics": ledger.metrics_bytes_up * sum(cohorts),
        "data_source": made.dataset.source,
        "data_fingerprint": made.dataset.fingerprint(),
        "python": platform.python_version(),
        "tensorflow": tf.__version__,
        "tensorflow_federated": tff.__version__,
    }
    return values
