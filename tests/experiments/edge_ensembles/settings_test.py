"""What the figures of edge ensembles are made of: flags, shared runs, measures by hand."""

import pathlib

import pytest

from experiments.edge_ensembles import (
    batch_normalization,
    figure5,
    figure6,
    figure7,
    figure8,
    figure9,
    figure10,
    figure11,
    sequential,
    settings,
)
from experiments.edge_ensembles.settings import (
    CLASSES,
    DEVICES,
    EPOCHS,
    FREQUENCIES,
    MIX,
    OPT,
    PAPER,
    QUICK,
)
from experiments.study import identity, papers
from experiments.study.experiment import Call, Experiment, Training
from experiments.study.measures import Measure
from experiments.study.store import Run, Status

FIGURES = [e for e in papers.all_experiments() if e.paper == "edge_ensembles"]
SCALES = ("smoke", "quick", "paper")


def flags(work: Training | Call) -> dict[str, str]:
    return dict(work.flags if isinstance(work, Training) else work.arguments["flags"])


def works(experiment: Experiment, scale: str = "paper") -> dict[str, Training | Call]:
    return {cell.name: cell.work for cell in experiment.scales[scale].cells}


def run(metrics: dict[str, float]) -> Run:
    return Run(pathlib.Path("nowhere"), Status.OK, {"metrics": metrics})


def checks(experiment: Experiment, text: str) -> dict[str, Measure]:
    (claim,) = [c for c in experiment.claims if text in c.text]
    return {check.name: check.measure for check in claim.checks}


# --- Runs -------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("budget", [10, 20])
@pytest.mark.parametrize("frequency", FREQUENCIES)
def test_every_run_of_a_budget_has_as_many_acquisitions(scale, budget, frequency):
    found = flags(settings.SIZES[scale].run(frequency=frequency, budget=budget).work)
    assert int(found["rounds"]) * int(found["acquisitions_per_round"]) == budget
    assert int(found["rounds"]) == frequency
    # Nothing has to be drawn twice.
    assert int(found["pool_size"]) >= budget * int(found["acquisition_size"])


def test_the_papers_settings():
    biased = flags(PAPER.run(epochs=5).work)
    wanted = {
        "partition": "disjoint_classes",
        "disjoint_classes.classes": "0,1;2,3;4,5,6;7,8,9",
        "acquisition": "random",
        "acquisition_size": "400",
        "batch_size": "400",
        "local_epochs": "5",
        "initial_examples": "400",
        "model": "cnn_edge",
        "method": "ave_fl",
    }
    assert {name: biased[name] for name in wanted} == wanted
    active = flags(PAPER.run("run", active=settings.ENTROPY).work)
    wanted = {
        "partition": "iid",
        "num_clients": "4",
        "acquisition": "max_entropy",
        "acquisition_size": "350",
        "kept_per_class": "5",
        "batch_size": "400",
        "pool_size": "8000",
        "initial_examples": "1000",
        "local_epochs": "45",
        "rounds": "10",
    }
    assert {name: active[name] for name in wanted} == wanted
    assert float(active["weight_decay"]) > 0 and "weight_decay" not in biased


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("experiment", FIGURES, ids=lambda e: e.name)
def test_all_start_from_a_model_trained_at_the_server_on_the_same_division(experiment, scale):
    """Else it could have seen what models are judged by; test data never decide."""
    of_data = ("dataset", "partition", "disjoint_classes.classes", "num_clients", "model")
    of_server = ("initial_examples", "selection_examples", "validation_fraction")
    for name, work in works(experiment, scale).items():
        assert work.uses_test_data == ("selected on the test set" in name)
        if work.start is None:
            assert flags(work)["pooled"] == "server"
            continue
        start, own = flags(work.start), flags(work)
        assert work.start.start is None and start["pooled"] == "server"
        for flag in (*of_data, *of_server):
            assert start.get(flag) == own.get(flag), flag
        stops = own["partition"] != "iid" or name.endswith("started at 15 %")
        assert "goal_selection" not in start and start.get("goal_accuracy") == (
            "0.15" if stops else None
        )


def test_figures_share_runs():
    """What one has made, the others find done."""

    def names(experiment: Experiment, scale: str) -> dict[str, str]:
        return {name: identity.name(work) for name, work in works(experiment, scale).items()}

    for scale in SCALES:
        five, six, seven = (
            names(e, scale) for e in (figure5.EXPERIMENT, figure6.EXPERIMENT, figure7.EXPERIMENT)
        )
        assert five["E45F10"] == six["E45F10"] == seven["E45F10"]
        assert six["E45F1"] == seven["E45F1"]
        assert set(names(figure10.EXPERIMENT, scale).values()) == {*six.values()} - {six["E1F10"]}
        assert six["E1F10"] == five["E1F10"]
        assert set(names(figure11.EXPERIMENT, scale).values()) == {
            seven["E45F10"],
            seven["E45F10 MixFL"],
            seven["E45F1"],
            seven["E45F10, 20 acquisitions"],
        }
        without = names(batch_normalization.EXPERIMENT, scale)["Without batch normalisation"]
        assert without == five["E45F10"]
        eight, nine = (names(e, scale) for e in (figure8.EXPERIMENT, figure9.EXPERIMENT))
        assert {eight["random"], eight["max entropy"]} == {nine["random"], nine["max entropy"]}


@pytest.mark.parametrize("scale", ["quick", "paper"])
def test_strategies_differ_in_the_server_step_alone(scale):
    found = {name: flags(work) for name, work in works(figure7.EXPERIMENT, scale).items()}
    ave = found["E45F10"]
    for method in (OPT, MIX):
        other = found[f"E45F10 {method}"]
        assert other.pop("ensemble_dropout_samples")
        assert other.pop("method") == settings.METHODS[method]
        assert other == {name: value for name, value in ave.items() if name != "method"}


def test_acquisition_functions_differ_in_nothing_else():
    found = {name: flags(work) for name, work in works(figure8.EXPERIMENT).items()}
    for own in found.values():
        own.pop("dropout_samples", None)  # Random choice looks at nothing.
        assert own.pop("acquisition")
    usual = found["random"]
    for how, changed in {
        ", E = 5": {"local_epochs": "5"},
        ", the printed pool": {"pool_size": "4000"},
        ", started at 15 %": {},
        "": {},
    }.items():
        of = [name for name in found if name.endswith(how)]
        assert len(of) == (2 if how else len(settings.ACQUISITIONS))
        assert all(found.pop(name) == usual | changed for name in of)


@pytest.mark.parametrize("scale", SCALES)
def test_an_epoch_is_one_step_unless_in_small_batches(scale):
    """The paper's: it "goes through the mini-batch", which is an acquisition."""
    for experiment in FIGURES:
        for name, work in works(experiment, scale).items():
            own = flags(work)
            if work.start is None:
                continue
            images = int(own["acquisition_size"]) + 10 * int(own.get("kept_per_class", 0))
            assert (int(own["batch_size"]) < images) == name.endswith(settings.SMALL)


def test_sequential_training_visits_each_device_once_with_the_whole_budget():
    found = flags(works(sequential.EXPERIMENT)["Sequential training"])
    assert (found["sampling"], found["clients_per_round"]) == ("in_turn", "1")
    assert (found["rounds"], found["acquisitions_per_round"]) == ("4", "10")


def test_quick_has_the_papers_proportions():
    """An eighth of the images of acquisitions and pools; as many initial ones."""
    assert PAPER.initial_examples == QUICK.initial_examples
    assert (PAPER.images, QUICK.images) == (400, 50)
    assert PAPER.pool_size == 8 * QUICK.pool_size


# --- Measures ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("accuracy", "wanted"), [(0.15, 0.005), (0.147, 0.002), (0.16, -0.005)])
def test_initial_accuracy_is_as_printed(accuracy, wanted):
    (measure,) = checks(figure5.EXPERIMENT, "initial accuracy").values()
    runs = {settings.INITIAL: run({"global_test_accuracy": accuracy})}
    assert measure.compute(runs) == pytest.approx(wanted)


@pytest.mark.parametrize(
    ("text", "other"),
    [("OptFL and MixFL are alike", f"E45F10 {OPT}"), ("AveFL and MixFL are alike", "E45F10")],
)
def test_no_big_difference_in_either_direction(text, other):
    measure = checks(figure7.EXPERIMENT, text)["5 points - distance, 10 acquisitions"]
    for one, mix, wanted in ((0.5, 0.53, 0.02), (0.53, 0.5, 0.02), (0.6, 0.5, -0.05)):
        runs = {
            other: run({"ensemble_accuracy": one}),
            f"E45F10 {MIX}": run({"ensemble_accuracy": mix}),
        }
        assert measure.compute(runs) == pytest.approx(wanted)


def test_divergence_of_a_layer_at_a_device():
    of_layer = "divergence of conv_1, D3, F = 1 - F = 2"
    measure = checks(figure10.EXPERIMENT, "From Figure 10a")[of_layer]

    def divergences(*values: float) -> Run:
        names = [f"divergence_conv_1_{device}" for device in DEVICES]
        return run(dict(zip(names, values, strict=True)))

    runs = {
        "E45F1": divergences(1, 2, 3, 4),
        "E45F2": divergences(1, 1, 1, 1),
    }
    assert measure.compute(runs) == pytest.approx(2)


def test_what_devices_and_ensemble_know():
    """By hand, of counts by class."""
    counts = {f"{d}_correct_{k}": 0.0 for d in (*DEVICES, "ensemble") for k in range(10)}
    for device, own in CLASSES.items():
        counts |= {f"{device}_correct_{label}": 100.0 for label in own}
    counts["D2_correct_9"] = 2.0
    ensemble = [90, 80, 70, 60, 8, 50, 12, 9, 100, 40]
    counts |= {f"ensemble_correct_{k}": float(n) for k, n in enumerate(ensemble)}
    runs = {"E45F10": run(counts)}
    own = checks(figure11.EXPERIMENT, "only predict the classes")
    found = {name.split()[-1]: measure.compute(runs) for name, measure in own.items()}
    assert found == {"D1": 1, "D2": -1, "D3": 1, "D4": 1}
    most = checks(figure11.EXPERIMENT, "most classes").values()
    # Class 6 has 12 images, so that class 7, with 9, has too few.
    assert [measure.compute(runs) for measure in most] == [78, 68, 58, 48, 38, -3, 88, 28]


def test_mix_and_opt_are_unlike_only_beyond_what_more_acquisitions_change():
    """Beyond what twice the acquisitions change of AveFL: 0 if nothing, 1 if all classes."""
    name = "OptFL to MixFL, 10 acquisitions - AveFL to AveFL at E = 45"
    measure = checks(figure7.EXPERIMENT, "distributions differ")[name]

    def ensemble(*known: int) -> Run:
        return run({f"ensemble_correct_{k}": 5.0 * (k in known) for k in range(10)})

    ave = {"E45F10": ensemble(0, 1), "E45F10, 20 acquisitions": ensemble(1, 2)}
    for known, wanted in (((0, 1), -0.5), ((2, 3), 0.5), ((1, 2), 0.0)):
        runs = {f"E45F10 {OPT}": ensemble(0, 1), f"E45F10 {MIX}": ensemble(*known)}
        assert measure.compute(runs | ave) == pytest.approx(wanted)


def test_each_strategy_against_the_best_device():
    name = f"accuracy of {MIX} - the best device, 10 acquisitions"
    measure = checks(figure7.EXPERIMENT, "above the four devices")[name]
    alone = {"D1_accuracy": 0.2, "D2_accuracy": 0.1, "D3_accuracy": 0.3, "D4_accuracy": 0.25}
    runs = {f"E45F10 {MIX}": run({"ensemble_accuracy": 0.28}), "E45F1": run(alone)}
    assert measure.compute(runs) == pytest.approx(-0.02)


def test_the_frequency_has_more_effect_on_divergence_than_the_epochs():
    of = {"E45F1": 0.7, "E45F10": 0.2, "E1F10": 0.1}
    runs = {n: run({f"divergence_{d}": x for d in DEVICES}) for n, x in of.items()}
    found = [c.compute(runs) for c in checks(figure6.EXPERIMENT, "cause divergence").values()]
    assert found == pytest.approx([0.5, 0.1, 0.4])


def test_each_acquisition_counts(monkeypatch):
    measures = checks(figure8.EXPERIMENT, "Given the same number").values()
    runs = {"random": run({}), "max entropy": run({"level": 0.2})}
    values = {"random": [0.0] * 10, "max entropy": [0.1 * n for n in range(10)]}
    of = {id(one): ([*range(1, 11)], values[name]) for name, one in runs.items()}
    monkeypatch.setattr(Run, "curve", lambda self, column: of[id(self)])
    assert [m.compute(runs) for m in measures] == pytest.approx(values["max entropy"])


@pytest.mark.parametrize(("accuracy", "wanted"), [(0.1, -0.16), (0.27, 0.01), (0.32, -0.02)])
def test_sequential_training_knows_the_last_subset(accuracy, wanted):
    (measure,) = checks(sequential.EXPERIMENT, "last subset").values()
    runs = {"Sequential training": run({"global_test_accuracy": accuracy})}
    assert measure.compute(runs) == pytest.approx(wanted)


def test_mix_is_unlike_ave_only_beyond_what_more_acquisitions_change():
    (measure,) = checks(figure11.EXPERIMENT, "another distribution").values()

    def ensemble(*known: int) -> Run:
        return run({f"ensemble_correct_{k}": 5.0 * (k in known) for k in range(10)})

    runs = {"E45F10": ensemble(0, 1), f"E45F10 {MIX}": ensemble(1, 2)}
    assert measure.compute({**runs, "E45F10, 20 acquisitions": ensemble(0, 1)}) == 0.5
    assert measure.compute({**runs, "E45F10, 20 acquisitions": ensemble(2, 3)}) == -0.5


def test_epochs_of_the_checks_are_those_of_the_figure():
    assert EPOCHS == (1, 5, 15, 25, 35, 45)
    for experiment in FIGURES:
        for claim in experiment.claims:
            for check in claim.checks:
                assert check.measure.cells, check.name
