"""The test on losses: by counting, and against TensorFlow Privacy's own."""

import numpy as np
import pytest

from tff_het.attacks import threshold
from tff_het.attacks.membership import Outputs


def outputs(n: int, advantage: float, seed: int = 0) -> Outputs:
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 5, [2, n])
    logits = rng.normal(size=(2, n, 5))
    logits[0, np.arange(n), labels[0]] += advantage
    return Outputs(np.concatenate(logits), np.concatenate(labels), np.repeat([True, False], n))


def losses(logits: np.ndarray, labels: np.ndarray) -> np.ndarray:
    p = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    return -np.log(p[np.arange(len(labels)), labels])


def test_against_counting():
    """AUC: how often a member's loss is below another's; true positives: of all thresholds."""
    given = outputs(300, 1.0)
    members, others = np.split(losses(given.logits, given.labels), 2)
    found = threshold.on_losses(given)
    assert found.auc == pytest.approx(np.mean(members[:, None] < others))
    rates = [
        np.mean(members <= limit)
        for limit in [*members, *others]
        if np.mean(others <= limit) <= threshold.LOW_FALSE_POSITIVE_RATE
    ]
    assert found.true_positives == pytest.approx(max(rates))
    assert found.auc > 0.7 and found.true_positives > 0.02


def test_chance_and_certainty():
    """Without any difference, in a band of four standard deviations; with the largest, all."""
    n = 2000
    none = threshold.on_losses(outputs(n, 0.0))
    assert abs(none.auc - 0.5) < 4 * np.sqrt((2 * n + 1) / (12 * n * n))
    assert none.true_positives < 0.03
    assert threshold.on_losses(outputs(100, 50.0)) == (1.0, 1.0)


def test_of_tied_losses_all_thresholds_count():
    level = np.linspace(-2, 2, 500)
    logits = np.tile(np.stack([level, -level], axis=1), [2, 1])
    tied = Outputs(logits, np.zeros(1000, int), np.repeat([True, False], 500))
    assert threshold.on_losses(tied).true_positives == pytest.approx(0.01)


def test_against_tensorflow_privacy():
    package = "tensorflow_privacy.privacy.privacy_tests.membership_inference_attack"
    reason = "tensorflow-empirical-privacy, with scikit-learn before 1.7, is not installed"
    attack = pytest.importorskip(f"{package}.membership_inference_attack", reason=reason)
    structures = pytest.importorskip(f"{package}.data_structures", reason=reason)
    for advantage in (0.0, 1.0, 3.0):
        given = outputs(500, advantage, seed=int(advantage))
        data = structures.AttackInputData(
            logits_train=given.logits[given.member],
            logits_test=given.logits[~given.member],
            labels_train=given.labels[given.member],
            labels_test=given.labels[~given.member],
        )
        with np.errstate(divide="ignore", invalid="ignore"):  # In bounds that are not used here.
            (result,) = attack.run_attacks(
                data, attack_types=[structures.AttackType.THRESHOLD_ATTACK]
            ).single_attack_results
        curve = result.roc_curve
        found = threshold.on_losses(given)
        assert found.auc == pytest.approx(curve.get_auc(), abs=1e-9)
        allowed = curve.fpr <= threshold.LOW_FALSE_POSITIVE_RATE
        assert found.true_positives == pytest.approx(curve.tpr[allowed].max(), abs=1e-9)


def test_outputs_that_are_not_finite():
    given = outputs(5, 0.0)
    given.logits[-1, 0] = np.inf
    with pytest.raises(ValueError, match="not finite"):
        threshold.on_losses(given)
