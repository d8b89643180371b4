"""XOR's weights read in NumPy against the process's own predictions."""

import numpy as np
import pytest

from experiments.cgau import xor
from tff_het.simulation import loop, runtime


@pytest.mark.slow
def test_accuracies_are_those_of_the_processes(tmp_path, monkeypatch):
    """Of all three networks, after so few rounds that some points are wrong."""
    evaluated = []
    train = loop.train

    def recorded(*args, **kwargs):
        result = train(*args, **kwargs)
        evaluated.append(float(np.mean(result.evaluation.local["test"].accuracy)))
        return result

    monkeypatch.setattr(loop, "train", recorded)
    with runtime.use("in_process"):
        found = xor.solve(seed=1, folder=tmp_path, data_dir=None, rounds=3, steps=5)
    assert [found[f"{name}_accuracy"] for name in xor.NETWORKS] == pytest.approx(evaluated)
    assert min(evaluated) < 1
    panels = np.load(tmp_path / xor.FILE)
    # The grid's point nearest to a cluster's centre is judged as the model judges it there.
    assert panels["cgau_logits"].shape == (len(xor.GRID) ** 2,)
    product = panels["cgau_filter"] * panels["cgau_gate"]
    # One unit: the logits are linear in its output.
    slope, intercept = np.polyfit(product, panels["cgau_logits"], 1)
    np.testing.assert_allclose(panels["cgau_logits"], slope * product + intercept, atol=1e-4)
