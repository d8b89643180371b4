"""Trains a run, and looks at each device's model before the server makes one of all."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from experiments.run import processes, setup
from tff_het.attacks import observation
from tff_het.evaluation import acquired, divergence
from tff_het.models.model import Weights

ARRAYS = "observed.npz"
ENSEMBLE = "ensemble"
# Figure 12: images of one class, fed to all models.
SHOWN_CLASS, NUM_SHOWN = 1, 10


def last_round(
    *, seed: int, folder: Path, data_dir: str | None, start_from: Path, flags: Mapping[str, str]
) -> dict[str, float]:
    """Trains a run, and tests each device's model and the ensemble on the whole test set.

    Writes `observed.npz`: activations, and what was acquired. Returns, of D1, D2, ... before the
    last ensembling and of 'ensemble' after it, '<it>_accuracy' and '<it>_correct_<class>' in
    images; of a device, 'divergence_<layer>_<device>', their mean 'divergence_<device>',
    '<device>_activations', the correlation with the ensemble's on images of class 1, and
    '<device>_imbalance', the mean total variation of acquired classes from even ones. If devices
    keep a part of their models, the ensemble's numbers are means over devices.
    """
    made = setup.of_flags(flags, seed=seed, data_dir=data_dir, start_from=str(start_from))
    ((name, process),) = processes.build(made).items()
    who = processes.trainers(made, name)
    seen = observation.last_round(
        process, who.population, who.schedule, made.settings, start=made.start
    )
    if len(seen.clients) != len(made.population):
        found = f"{len(seen.clients)} of {len(made.population)}"
        raise ValueError(f"All devices have to train in the last round; found {found}.")
    test, num_classes = made.dataset.test, made.dataset.num_classes
    columns = {name: test[name] for name in process.model.example_spec}

    def outputs(weights: Weights, one: observation.Observation) -> Mapping[str, np.ndarray]:
        assert one.private is not None
        return process.predict(weights, one.private, columns, client=one.client)

    # Devices have one model after the round, unless they keep a part of it.
    keeping = any(spec.local for spec in process.model.specs)
    different = seen.clients if keeping else seen.clients[:1]
    after = [outputs(seen.new_weights, one) for one in different]
    tested = [_tested(ENSEMBLE, found["logits"], test["y"]) for found in after]
    numbers = {name: float(np.mean([one[name] for one in tested])) for name in tested[0]}
    models = [one.after for one in seen.clients]
    layers = divergence.by_layer(process.model, models, seen.new_weights)
    shown = np.flatnonzero(test["y"] == SHOWN_CLASS)[:NUM_SHOWN]
    ensemble = np.mean([found["hidden"][shown] for found in after], axis=0)
    arrays = {f"{ENSEMBLE}_activations": ensemble}
    for place, one in enumerate(seen.clients):
        device, before = f"D{one.client + 1}", outputs(one.after, one)
        arrays[f"{device}_activations"] = pattern = before["hidden"][shown]
        numbers |= _tested(device, before["logits"], test["y"])
        own = {f"divergence_{layer}_{device}": float(of[place]) for layer, of in layers.items()}
        numbers |= own | {f"divergence_{device}": float(np.mean(list(own.values())))}
        numbers[f"{device}_activations"] = divergence.pattern_correlation(pattern, ensemble)
        if (acquisition := made.training.acquisition) is not None:
            assert one.private is not None
            labels = made.population[one.client].train["y"]
            counts = acquired.class_counts(acquisition, one.private, labels, num_classes)
            arrays[f"{device}_acquired"] = counts
            numbers[f"{device}_imbalance"] = _imbalance(counts)
    np.savez_compressed(folder / ARRAYS, **arrays)
    return numbers


def _tested(of: str, logits: np.ndarray, labels: np.ndarray) -> dict[str, float]:
    correct = divergence.correct_by_class(logits, labels)
    counts = {f"{of}_correct_{label}": float(count) for label, count in enumerate(correct)}
    return {f"{of}_accuracy": float(correct.sum() / len(labels)), **counts}


def _imbalance(counts: np.ndarray) -> float:
    """Of [acquisitions, classes]; 0 where even. Empty ones, of a used-up pool, do not count."""
    totals = counts.sum(axis=1, keepdims=True)
    distances = np.abs(counts / np.maximum(totals, 1) - 1 / counts.shape[1]).sum(axis=1) / 2
    return float(distances[totals[:, 0] > 0].mean())
