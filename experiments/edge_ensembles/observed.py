"""Reads the devices of a run's last round and their ensemble.

The run is an ordinary one; its last round is done in two halves, so that each device's model can
be looked at before the server makes one of all.
"""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from experiments.run import observing, processes, setup
from experiments.run.config import RunConfig
from tff_het.attacks.observation import Observation
from tff_het.datasets import Examples
from tff_het.evaluation import acquired, divergence
from tff_het.learning.process import FederatedProcess
from tff_het.models.model import Weights

ARRAYS = "observed.npz"
ENSEMBLE = "ensemble"
# Figure 12: images of one class, fed to all models.
SHOWN_CLASS, NUM_SHOWN = 1, 10


def last_round(
    *,
    seed: int,
    folder: Path,
    data_dir: str | None,
    start_from: Path,
    flags: Mapping[str, str],
) -> dict[str, float]:
    """Trains a run, and tests each device's model and the ensemble on the whole test set.

    Args:
      seed: Of the run.
      folder: Receives `observed.npz`: activations, and what was acquired, if devices acquire.
      data_dir: The folder of data sets.
      start_from: The run whose model the devices start from.
      flags: The run's, with one method, all of whose clients train in the last round.

    Returns:
      With devices named D1, D2, ...: '<device>_accuracy' before the last ensembling,
      'ensemble_accuracy' after it, '<either>_correct_<class>' in images,
      'divergence_<layer>_<device>' and 'divergence_<device>', its mean over layers, and
      '<device>_activations', the correlation with the ensemble's on ten images of class 1. Where
      devices acquire, '<device>_imbalance', the mean over acquisitions of the total variation
      between the acquired classes and even ones. Where a device keeps a part of its model, the
      ensemble is what it predicts with afterwards; numbers are then means over devices.

    Raises:
      ValueError: If flags do not fit each other or the data, or not all clients train.
    """
    values = {**flags, "seed": str(seed), "start_from": str(start_from)}
    if data_dir is not None:
        values["data_dir"] = data_dir
    made = setup.make(RunConfig.of(**values))
    ((name, process),) = processes.build(made).items()
    course = processes.course(made, name, process)
    seen = observing.last_round(
        process, course.population, course.schedule, made.settings, start=made.start
    )
    acquisition = made.training.acquisition
    test, num_classes = made.dataset.test, made.dataset.num_classes
    clients = seen.round.clients
    if len(clients) != len(made.population):
        raise ValueError(
            f"All {len(made.population)} devices have to train in the last round, found "
            f"{len(clients)} that do."
        )
    devices = {f"D{one.client + 1}": one for one in clients}
    asked = _Asked(process, test)
    before = {device: asked(one.after, one) for device, one in devices.items()}
    after = [asked(seen.round.new_weights, one) for one in _different(process, clients)]
    found = _tested(before, test["y"]) | _mean([_tested({ENSEMBLE: a}, test["y"]) for a in after])
    found |= _divergences(process, list(devices), clients, seen.round.new_weights)
    shown = np.flatnonzero(test["y"] == SHOWN_CLASS)[:NUM_SHOWN]
    patterns = {device: outputs["hidden"][shown] for device, outputs in before.items()}
    patterns[ENSEMBLE] = np.mean([outputs["hidden"][shown] for outputs in after], axis=0)
    for device in devices:
        alike = divergence.pattern_correlation(patterns[device], patterns[ENSEMBLE])
        found[f"{device}_activations"] = alike
    arrays = {f"{device}_activations": pattern for device, pattern in patterns.items()}
    if acquisition is not None:
        for device, one in devices.items():
            assert one.private is not None
            labels = made.population[one.client].train["y"]
            counts = acquired.class_counts(acquisition, one.private, labels, num_classes)
            arrays[f"{device}_acquired"] = counts
            found[f"{device}_imbalance"] = _imbalance(counts)
    np.savez_compressed(folder / ARRAYS, **arrays)
    return found


class _Asked:
    """Predictions of models on the test set."""

    def __init__(self, process: FederatedProcess, test: Examples):
        self._process = process
        self._columns = {name: test[name] for name in process.model.example_spec}

    def __call__(self, weights: Weights, device: Observation) -> Mapping[str, np.ndarray]:
        assert device.private is not None
        return self._process.predict(weights, device.private, self._columns, client=device.client)


def _different(
    process: FederatedProcess, clients: tuple[Observation, ...]
) -> tuple[Observation, ...]:
    """Devices that have different models after the round: one, unless they keep a part of it."""
    return clients if any(spec.local for spec in process.model.specs) else clients[:1]


def _tested(outputs: Mapping[str, Mapping[str, np.ndarray]], labels: np.ndarray) -> dict:
    found: dict[str, float] = {}
    for name, given in outputs.items():
        correct = divergence.correct_by_class(given["logits"], labels)
        found[f"{name}_accuracy"] = float(correct.sum() / len(labels))
        found |= {f"{name}_correct_{k}": float(count) for k, count in enumerate(correct)}
    return found


def _divergences(
    process: FederatedProcess,
    devices: list[str],
    clients: tuple[Observation, ...],
    ensemble: Weights,
) -> dict[str, float]:
    found = divergence.by_layer(process.model, [one.after for one in clients], ensemble)
    values = {
        f"divergence_{layer}_{device}": float(value)
        for layer, of_devices in found.items()
        for device, value in zip(devices, of_devices, strict=True)
    }
    means = np.mean(list(found.values()), axis=0)
    return values | {f"divergence_{d}": float(m) for d, m in zip(devices, means, strict=True)}


def _mean(of_devices: list[dict[str, float]]) -> dict[str, float]:
    return {name: float(np.mean([one[name] for one in of_devices])) for name in of_devices[0]}


def _imbalance(counts: np.ndarray) -> float:
    """Of [acquisitions, classes]; acquisitions of an exhausted pool, which are empty, do not count.

    0 where each has as many images of one class as of any other, and 1 - 1 / classes where all are
    of one class.
    """
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    distances = np.abs(shares - 1 / counts.shape[1]).sum(axis=1) / 2
    return float(distances[counts.sum(axis=1) > 0].mean())
