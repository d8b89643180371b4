"""One run from Python: its result, its seeds, its split and initial weights, plugins."""

import filecmp
import sys

import numpy as np
import pytest

from experiments import train
from experiments.run import RunConfig, one, plugins, processes, run, setup
from tff_het.methods import METHODS
from tff_het.simulation import runtime
from tff_het.simulation import start as starts

SMALL = {"rounds": 2, "local_steps": 2, "tracking": []}
# Clients of these predict with what they make of the models that they have.
ADAPTED = ("fed_avg_ft", "ifca", "fed_recon", "apfl")


@pytest.fixture(autouse=True)
def in_process():
    with runtime.use("in_process", clients_in_parallel=1):
        yield


@pytest.mark.parametrize(
    "method", ["hdafl", "ditto", *(pytest.param(m, marks=pytest.mark.slow) for m in ADAPTED)]
)
def test_result_has_curves_clients_and_models(method):
    with run(RunConfig.of(method=method, **SMALL)) as result:
        assert result.curves["round"].tolist() == [1, 2]
        last = result.curves["local_test_accuracy_mean"][-1]
        assert last == pytest.approx(np.mean(list(result.clients.values())))
        assert last == pytest.approx(result.summary["local_test_accuracy_mean"])
        test = result.made.population[3].test
        right = result.predict(3, test)["logits"].argmax(axis=-1) == test["y"]
        assert right.mean() == pytest.approx(result.clients[result.made.population.ids[3]])


@pytest.mark.slow
def test_a_sampled_evaluation_is_said_in_the_summary():
    sampled = {"method": "waffle", "evaluate_clients": 2, "validation_fraction": 0.2}
    with run(RunConfig.of(**sampled, **SMALL)) as result:
        assert result.summary["evaluated_clients"] == len(result.clients) == 2
        assert result.summary["local_test_accuracy_num_clients"] == 2
        last = result.curves["local_test_accuracy_mean"][-1]
        assert last == pytest.approx(np.mean(list(result.clients.values())))


def test_flags_yaml_and_python_give_the_same_bytes(tmp_path):
    path = tmp_path / "run.yaml"
    path.write_text(
        "method: lg_fedavg\nrounds: 2\nlocal_steps: 2\nlg_fedavg: {norm_weights: true}\n"
    )
    flags = ["--method=lg_fedavg", "--rounds=2", "--local_steps=2", "--norm_weights"]
    train.main([f"--config={path}", f"--output_dir={tmp_path / 'yaml'}"])
    train.main([*flags, f"--output_dir={tmp_path / 'flags'}"])
    config = RunConfig.of(method="lg_fedavg", **SMALL, lg_fedavg={"norm_weights": True})
    run(config, tmp_path / "python").close()
    for name in ("metrics.csv", "clients.csv", "weights.npz", "summary.json"):
        for other in ("flags/lg_fedavg", "python"):
            same = filecmp.cmp(tmp_path / "yaml/lg_fedavg" / name, tmp_path / other / name, False)
            assert same, (name, other)


def test_no_run_starts_from_one_that_became_longer_and_has_not_ended(tmp_path):
    run(RunConfig.of(method="fed_avg", **SMALL), tmp_path).close()
    assert starts.read(tmp_path).rounds == 2

    def interrupted(round_num):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(RunConfig.of(method="fed_avg", **SMALL | {"rounds": 4}), tmp_path, on_round=interrupted)
    with pytest.raises(FileNotFoundError, match="has to be finished"):
        starts.read(tmp_path)


def test_one_split_and_one_model_with_three_orders():
    fixed = {"method": "fed_avg", "partition": "dirichlet", "partition_seed": 0, "model_seed": 0}
    made = [setup.make(RunConfig.of(**fixed, **SMALL, seed=seed)) for seed in range(3)]
    assert len({one.partition.fingerprint() for one in made}) == 1
    states = [processes.build(one)["fed_avg"].initialize() for one in made]
    for state in states[1:]:
        for ours, first in zip(state.weights.trainable, states[0].weights.trainable, strict=True):
            np.testing.assert_array_equal(ours, first)
    weights = []
    for seed in range(3):
        with run(RunConfig.of(**fixed, **SMALL, seed=seed)) as result:
            weights.append(np.asarray(result.rounds.state.weights.trainable[0]))
    assert not np.array_equal(weights[0], weights[1])
    assert not np.array_equal(weights[1], weights[2])
    other = setup.make(RunConfig.of(method="fed_avg", partition="dirichlet", seed=1))
    assert other.partition.fingerprint() != made[0].partition.fingerprint()


def test_initial_weights_go_out_and_in(tmp_path):
    file, argv = tmp_path / "initial.npz", ["--method=fed_avg", "--rounds=2", "--local_steps=2"]
    train.main([*argv, f"--save_initial_weights={file}", f"--output_dir={tmp_path / 'out'}"])
    train.main([*argv, "--model_seed=5", f"--start_from={file}", f"--output_dir={tmp_path / 'in'}"])
    for name in ("metrics.csv", "weights.npz"):
        out, back = (tmp_path / folder / "fed_avg" / name for folder in ("out", "in"))
        assert filecmp.cmp(out, back, False), name
    np.savez(tmp_path / "mine.npz", **starts.read(file).values)  # As any framework could.
    assert starts.read(tmp_path / "mine.npz").fingerprint() == starts.read(file).fingerprint()


def test_a_split_from_a_file_gives_the_same_bytes(tmp_path):
    argv = ["--method=fed_avg", "--rounds=2", "--local_steps=2"]
    first, second = tmp_path / "first", tmp_path / "second"
    train.main([*argv, "--partition=dirichlet", f"--output_dir={first}"])
    split = f"--file.path={first / 'partition.npz'}"
    train.main([*argv, "--partition=file", split, f"--output_dir={second}"])
    for name in ("metrics.csv", "clients.csv"):
        assert filecmp.cmp(first / "fed_avg" / name, second / "fed_avg" / name, False)


PLUGIN = '''
"""A method of a user."""
from tff_het.kinds import Positive
from tff_het.methods import METHODS
from tff_het.methods.fed_prox import build_fed_prox

def build(architecture, training, *, seed: int, strength: Positive = 1.0, local_layers: str = "-"):
    """Builds it.

    Args:
      strength: How strong.
      local_layers: An option that other methods have, too, of another kind.
    """
    assert local_layers == "mine", local_layers
    return build_fed_prox(architecture, training, seed=seed, proximal_strength=strength)

METHODS.register("mine_{name}", build)
'''


@pytest.mark.slow
def test_a_plugins_method_stands_beside_ours(tmp_path, capsys):
    path = tmp_path / f"plugin_{tmp_path.name}.py".replace("-", "_")
    path.write_text(PLUGIN.format(name=path.stem))
    method = f"mine_{path.stem}"
    try:
        with pytest.raises(SystemExit):
            train.main([f"--plugin={path}", "--help"])
        assert (
            f"--{method}.strength: How strong. Values: a number above 0" in capsys.readouterr().out
        )
        train.main(
            [
                f"--plugin={path}", f"--method={method},hdafl", "--strength=0.5", "--rounds=1",
                f"--{method}.local_layers=mine", "--hdafl.local_layers=output",
                f"--output_dir={tmp_path / 'out'}",
            ]
        )  # fmt: skip
        table = (tmp_path / "out" / "comparison.md").read_text()
        assert f"| {method} " in table and "| hdafl " in table
        flags = (tmp_path / "out" / method / "flags.txt").read_text()
        assert f"--{method}.strength=0.5\n" in flags and "hdafl.local_layers" not in flags
        config = RunConfig.of(plugin=[str(path)], method=method)

        def identity():  # As in another program.
            for kept in (plugins.meaning, plugins.imports):
                kept.cache_clear()
            return str(processes.identity(setup.make(config), method))

        found = [identity()]
        path.write_text(path.read_text() + "# Another.\n")
        assert identity() == found[0]
        path.write_text(path.read_text() + "import beside\n")
        (tmp_path / "nobody_imports_it.py").write_text("a = 1")
        found.append(identity())
        for text in ("a = 1", "a = 2"):
            (tmp_path / "beside.py").write_text(text)
            found.append(identity())
        assert len({*found}) == 4
    finally:
        METHODS._places.pop(method, None)
        sys.modules.pop(path.stem, None)
        sys.path.remove(str(tmp_path))


@pytest.mark.parametrize("named_in", ["file", "flag"])
def test_a_plugins_options_stand_in_the_file_that_names_it(tmp_path, named_in, capsys):
    path = tmp_path / f"plugin_{tmp_path.name}.py".replace("-", "_")
    path.write_text(PLUGIN.format(name=path.stem))
    method, config = f"mine_{path.stem}", tmp_path / "mine.yaml"
    named = f"plugin: [{path}]\n" if named_in == "file" else ""
    config.write_text(f"{named}method: {method}\n{method}: {{strength: 0.25}}\n")
    flags = [] if named_in == "file" else [f"--plugin={path}"]
    try:
        with pytest.raises(SystemExit):
            train.main([f"--config={config}", *flags, "--print_config"])
        assert f"\n{method}.strength: 0.25 " in capsys.readouterr().out
    finally:
        METHODS._places.pop(method, None)
        sys.modules.pop(path.stem, None)
        sys.path.remove(str(tmp_path))


@pytest.mark.parametrize(
    ("parameter", "message"),
    [
        ("strength: float", "parameter strength has no default"),
        ("rounds: int = 3", "rename its parameter rounds, a setting of every run"),
    ],
)
def test_a_method_that_cannot_be_set_is_refused(tmp_path, parameter, message):
    path = tmp_path / f"plugin_{tmp_path.name}.py".replace("-", "_")
    method = f"mine_{path.stem}"
    path.write_text(
        "from tff_het.methods import METHODS\n"
        f"def build(architecture, training, *, seed: int, {parameter}): ...\n"
        f"METHODS.register({method!r}, build)\n"
    )
    try:
        with pytest.raises(ValueError, match=message):
            RunConfig.of(plugin=str(path), method=method)
    finally:
        METHODS._places.pop(method, None)
        sys.modules.pop(path.stem, None)
        sys.path.remove(str(tmp_path))


def test_config_of_two_methods_is_no_single_run():
    with pytest.raises(ValueError, match="Expected one method, found hdafl, fed_avg"):
        one.run(RunConfig.of())
