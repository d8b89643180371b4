"""Devices and ensemble of small runs on digits: against the run itself, and by hand."""

import json

import numpy as np
import pytest

from experiments.edge_ensembles import observed
from experiments.edge_ensembles.settings import CLASSES, DEVICES, MIX, SMOKE
from experiments.run import one, processes, setup
from experiments.run.config import RunConfig
from tff_het import datasets
from tff_het.attacks import observation
from tff_het.simulation import loop, runtime

LABELS = datasets.load("digits", None).test["y"]


@pytest.fixture(autouse=True, scope="module")
def _runtime():
    with runtime.use("in_process", clients_in_parallel=1):
        yield


def flags(cell) -> dict[str, str]:
    # Long enough to forget other devices' classes.
    return {**cell.work.arguments["flags"], "local_epochs": "45"}


@pytest.fixture(scope="module")
def start(tmp_path_factory):
    folder = tmp_path_factory.mktemp("start")
    one.run(RunConfig.of(**{**SMOKE.start().flags, "seed": "3"}), folder).close()
    return folder


@pytest.fixture(scope="module")
def look(tmp_path_factory, start):
    """Runs the function; gives its numbers and arrays."""

    def run(values: dict[str, str]) -> tuple[dict[str, float], dict[str, np.ndarray]]:
        folder = tmp_path_factory.mktemp("observed")
        found = observed.last_round(
            seed=3, folder=folder, data_dir=None, start_from=start, flags=values
        )
        with np.load(folder / observed.ARRAYS) as arrays:
            return found, dict(arrays)

    return run


@pytest.fixture(scope="module")
def of_mix(look):
    return look(flags(SMOKE.run("run", method=MIX, frequency=2)))


@pytest.mark.slow
def test_the_ensemble_is_the_runs_own(of_mix, start, tmp_path):
    """What `experiments.train` ends with, with the same flags."""
    values = flags(SMOKE.run("run", method=MIX, frequency=2))
    one.run(RunConfig.of(**{**values, "seed": "3", "start_from": str(start)}), tmp_path).close()
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert of_mix[0]["ensemble_accuracy"] == summary["global_test_accuracy"]


@pytest.mark.slow
def test_counts_are_those_of_accuracy(of_mix):
    found, _ = of_mix
    for name in (*DEVICES, "ensemble"):
        counts = [found[f"{name}_correct_{label}"] for label in range(10)]
        assert sum(counts) / len(LABELS) == pytest.approx(found[f"{name}_accuracy"])
        assert all(counts <= np.bincount(LABELS))


@pytest.mark.slow
def test_devices_know_their_own_classes(of_mix):
    found, _ = of_mix
    for device, own in CLASSES.items():
        counts = np.array([found[f"{device}_correct_{label}"] for label in range(10)])
        assert counts[list(own)].sum() > 0.9 * counts.sum()
        share = np.isin(LABELS, own).mean()
        assert 0.5 * share < found[f"{device}_accuracy"] < share + 0.03


@pytest.mark.slow
def test_divergence_and_activations(of_mix):
    """Means over layers; the ensemble is not a device that is unlike itself."""
    found, arrays = of_mix
    for device in DEVICES:
        layers = [
            found[f"divergence_{layer}_{device}"]
            for layer in ("conv_1", "conv_2", "dense_1", "output")
        ]
        assert found[f"divergence_{device}"] == pytest.approx(np.mean(layers))
        one, other = arrays[f"{device}_activations"], arrays["ensemble_activations"]
        assert one.shape == (10, 32)
        wanted = np.corrcoef(one.ravel(), other.ravel())[0, 1]
        assert found[f"{device}_activations"] == pytest.approx(wanted, abs=1e-6)


@pytest.mark.slow
def test_what_was_acquired(of_mix):
    """Ten acquisitions in both rounds, of the device's own classes."""
    found, arrays = of_mix
    for device, own in CLASSES.items():
        counts = arrays[f"{device}_acquired"]
        assert counts.shape == (10, 10) and (counts.sum(axis=1) == 12).all()
        assert set(np.flatnonzero(counts.sum(axis=0))) == set(own)
        shares = counts / 12
        wanted = np.mean([np.abs(row - 0.1).sum() / 2 for row in shares])
        assert found[f"{device}_imbalance"] == pytest.approx(wanted)


@pytest.mark.slow
def test_without_ensembling_devices_train_as_with_local_only(start):
    """Weight by weight: the bars without ensembling are the devices of F = 1."""
    models = []
    for method in ("ave_fl", "local_only"):
        values = flags(SMOKE.run("run", frequency=1)) | {"method": method}
        made = setup.make(RunConfig.of(**{**values, "seed": "3", "start_from": str(start)}))
        ((_, process),) = processes.build(made).items()
        seen = observation.last_round(
            process, made.population, made.schedule, made.settings, start=made.start
        )
        models.append(
            [
                one.after.trainable if method == "ave_fl" else one.private.model.trainable
                for one in seen.clients
            ]
        )
    for ours, alone in zip(*models, strict=True):
        assert len(ours) == len(alone) == 8
        for a, b in zip(ours, alone, strict=True):
            np.testing.assert_allclose(a, b, atol=1e-6)
    assert not np.allclose(models[0][0][0], models[0][1][0])  # Devices differ.


@pytest.mark.slow
def test_devices_that_keep_statistics_have_an_ensemble_each(tmp_path):
    """Its accuracy is the mean of theirs, each with the averaged weights and its own statistics."""
    normalised = SMOKE.but(model="cnn_edge_digits_bn")
    cell = normalised.run("run", frequency=2)
    start, folder = tmp_path / "start", tmp_path / "observed"
    folder.mkdir()
    one.run(RunConfig.of(**{**cell.work.start.flags, "seed": "3"}), start).close()
    values = flags(cell) | {"local_statistics": "true"}
    found = observed.last_round(
        seed=3, folder=folder, data_dir=None, start_from=start, flags=values
    )
    test = datasets.load("digits", None).test
    made = setup.make(RunConfig.of(**{**values, "seed": "3", "start_from": str(start)}))
    ((_, process),) = processes.build(made).items()
    result = loop.train(process, made.population, made.schedule, made.settings, start=made.start)
    accuracies = []
    for client in range(4):
        state = result.client_states.get(client, result.state)
        logits = process.predict(result.state.weights, state, test, client=client)["logits"]
        accuracies.append(np.mean(logits.argmax(axis=1) == test["y"]))
    assert len(set(accuracies)) > 1
    assert found["ensemble_accuracy"] == pytest.approx(np.mean(accuracies))


@pytest.mark.slow
def test_all_devices_have_to_train(look):
    values = flags(SMOKE.run("run", frequency=2)) | {"clients_per_round": "3"}
    with pytest.raises(ValueError, match="train in the last round; found 3 of 4"):
        look(values)
