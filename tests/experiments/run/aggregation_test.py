"""Flags of how updates are aggregated: runs repeat and go on, and say what they promise."""

import json

import pytest

from experiments.run import aggregation, one, processes, setup
from experiments.run.config import RunConfig
from tff_het.evaluation import communication, privacy
from tff_het.simulation import runtime

RUN = {
    "dataset": "digits",
    "partition": "iid",
    "num_clients": "5",
    "clients_per_round": "3",
    "model": "mlp",
    "method": "hdafl",
    "rounds": "3",
}
DP = {"aggregator": "dp", "noise_multiplier": "0.5", "update_clip_norm": "0.3"}


def trained(values, folder):
    with runtime.use("in_process", clients_in_parallel=2):
        one.run(RunConfig.of(**values), folder).close()
    return [(folder / name).read_bytes() for name in ("metrics.csv", "summary.json", "weights.npz")]


def summary(folder):
    return json.loads((folder / "summary.json").read_text())


@pytest.mark.slow
def test_a_private_run_that_goes_on_ends_as_one_that_never_stopped(tmp_path):
    whole = trained({**RUN, **DP}, tmp_path / "whole")
    trained({**RUN, **DP, "rounds": "1"}, tmp_path / "in_two")
    assert trained({**RUN, **DP}, tmp_path / "in_two") == whole
    found = summary(tmp_path / "whole")
    assert found["dp_epsilon"] == privacy.sampled_epsilon(0.5, 3, 3, 5, 1e-5)
    assert found["dp_delta"] == 1e-5 and "3 rounds of 3 of 5 clients" in found["dp_bound"]


@pytest.mark.slow
def test_compressed_runs_say_what_was_sent(tmp_path):
    values = {**RUN, "rounds": "1"}
    trained(values, tmp_path / "mean")
    trained(
        {**values, "aggregator": "compressed", "quantization_threshold": "1000"}, tmp_path / "less"
    )
    mean, less = summary(tmp_path / "mean"), summary(tmp_path / "less")
    assert 0.25 < less["bytes_up_total"] / mean["bytes_up_total"] < 0.35
    assert less["bytes_down_total"] == mean["bytes_down_total"]
    assert not [name for name in mean if name.startswith("dp_")]


def test_fewer_bits_are_fewer_bytes():
    values = {**RUN, "aggregator": "compressed", "quantization_threshold": "1000"}

    def sent(bits: str) -> int:
        made = setup.make(RunConfig.of(**values, quantization_bits=bits))
        return communication.ledger(processes.build(made)["hdafl"]).bytes_up

    assert 0.5 < sent("4") / sent("8") < 0.55


@pytest.mark.parametrize(
    ("given", "promised"),
    [
        ({}, "dp: epsilon infinite at delta 1e-05"),
        ({"noise_multiplier": "4", "delta": "0.01", "clients_per_round": "5"}, None),
        ({"noise_multiplier": "4", "delta": "0.01", "sampling": "in_turn"}, None),
    ],
)
def test_what_is_promised_follows_who_takes_part(given, promised):
    values = {**RUN, **DP, "noise_multiplier": "0", **given}
    made = setup.make(RunConfig.of(**values))
    sentence, found = aggregation.describe(made), aggregation.promise(made, 3)
    if promised:
        assert found["dp_epsilon"] is None and sentence.startswith(promised)
        return
    # In turn, 3 of 5: the first and the last of the first six places are the same clients.
    times = 2 if "sampling" in given else 3
    assert found["dp_epsilon"] == privacy.composed_epsilon(4.0, times, 0.01)
    assert f"epsilon {found['dp_epsilon']:.4g} at delta 0.01" in sentence
    assert "Every client counts the same; training metrics are sent without noise." in sentence


def test_moving_statistics_that_clients_keep_get_no_noise():
    """Those that are averaged are refused, see flags_test.py."""
    values = {**RUN, **DP, "model": "cnn_edge_digits_bn", "local_statistics": "true"}
    made = setup.make(RunConfig.of(**values))
    (process,) = processes.build(made).values()
    kept = {spec.path for spec in process.model.specs if spec.local}
    assert "norm_of_conv_1/moving_variance" in kept
