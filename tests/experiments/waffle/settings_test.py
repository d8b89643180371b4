"""What WAFFLe's tables are made of: flags, counts, measures, and which printed values disagree."""

import csv
import dataclasses
import pathlib

import numpy as np
import pytest

import experiments.study as s
from experiments.study import store
from experiments.study.experiment import Experiment
from experiments.study.store import Run, Status
from experiments.waffle import (
    baselines,
    figure6,
    figure7,
    settings,
    table1,
    table2,
    table4,
    table5,
    table6,
)
from experiments.waffle.settings import CIFAR, DATA, FMNIST, MNIST, WAFFLE
from tff_het import methods
from tff_het.backend.names import tff
from tff_het.learning.local_training import LocalTraining
from tff_het.models import architectures
from tff_het.models.layers import Layers

SHAPES = {MNIST: (28, 28, 1), FMNIST: (28, 28, 1), CIFAR: (32, 32, 3)}


def printed(experiment: Experiment) -> dict:
    """(row, column) -> what is printed."""
    return {(p.row, p.column): p for p in experiment.printed}


def run(folder: pathlib.Path, columns: dict[str, list]) -> Run:
    """A run with these columns of `metrics.csv`; None: nothing was measured."""
    (folder / "files").mkdir()
    with (folder / "files" / "metrics.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["round", *columns])
        for n, values in enumerate(zip(*columns.values(), strict=True), start=1):
            writer.writerow([n, *("" if v is None else v for v in values)])
    return Run(folder, Status.OK, {"files": store.digests(folder / "files")})


# --- Runs -------------------------------------------------------------------------------------


def flags(experiment: Experiment, cell: str, scale: str = "paper") -> dict[str, str]:
    (found,) = [c.work for c in experiment.scales[scale].cells if c.name == cell]
    assert not found.uses_test_data
    return dict(found.flags)


@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("experiment", [table1.EXPERIMENT, table2.EXPERIMENT], ids=lambda e: e.name)
def test_methods_differ_in_nothing_but_their_own_flags(experiment, data):
    for scale in experiment.scales:
        for setting in ("unimodal", "multimodal")[experiment.name == "table2" :]:
            common = []
            for method, own in settings.METHODS.items():
                found = flags(experiment, f"{data}/{setting}/{method}", scale)
                assert ("factors" in found) == method.startswith(WAFFLE)
                found.pop("factors", None)
                given = {name: str(value) for name, value in own.items() if name != "factors"}
                assert {name: found.pop(name) for name in given} == given
                common.append(found)
            assert all(one == common[0] for one in common)


@pytest.mark.parametrize(
    ("data", "setting", "clients", "drawn", "rate"),
    [
        (MNIST, "unimodal", "100", "10", "0.04"),
        (MNIST, "multimodal", "120", "12", "0.04"),
        (FMNIST, "unimodal", "100", "10", "0.02"),
        (FMNIST, "multimodal", "110", "11", "0.02"),
        (CIFAR, "multimodal", "110", "11", "0.02"),
    ],
)
def test_settings_of_section_4_and_the_appendices(data, setting, clients, drawn, rate):
    found = flags(table1.EXPERIMENT, f"{data}/{setting}/WAFFLe")
    wanted = {
        "num_clients": clients,
        "clients_per_round": drawn,
        "client_learning_rate": rate,
        "rounds": "100",
        "local_epochs": "5",
        "batch_size": "10",
        "shards_per_client": "2",
        "bias": "false",
    }
    assert {name: found[name] for name in wanted} == wanted
    assert found.get("minority_clients") == (None if setting == "unimodal" else "20")


def test_what_other_tables_change():
    for experiment in (table4.EXPERIMENT, table5.EXPERIMENT):
        for cell in experiment.scales["paper"].cells:
            assert cell.work.flags["local_epochs"] == cell.name.rsplit("=")[-1]
            assert cell.work.flags["rounds"] == "50"
            assert cell.work.flags["client_learning_rate"] == "0.02"
    for cell in table6.EXPERIMENT.scales["paper"].cells:
        number, alpha = cell.name.split("/F=", 1)[1].split(", alpha/F=")
        assert cell.work.flags["factors"] == f"dense_1={number}"
        assert cell.work.flags["alpha_over_factors"] == alpha
    for cell in figure7.EXPERIMENT.scales["paper"].cells:
        assert cell.work.flags["shards_per_client"] == cell.name[-1]


# --- Printed values ---------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("data", DATA)
def test_counts_are_marked_where_the_models_have_others(data):
    """The paper's numbers of parameters beside those of the models, without biases."""
    own = DATA[data]
    element = {"x": (np.dtype(np.uint8), SHAPES[data]), "y": (np.dtype(np.int32), ())}
    architecture = dataclasses.replace(
        architectures.make(own.model, element, 10), kind=Layers(bias=False)
    )
    training = LocalTraining(tff.learning.optimizers.build_sgdm(0.1), batch_size=10, epochs=1)
    factors = dict(part.split("=") for part in own.factors.split(","))
    waffle = methods.build(
        "waffle",
        architecture,
        training,
        seed=0,
        factors={layer: int(number) for layer, number in factors.items()},
    )
    counts = dict.fromkeys(settings.BASELINES, architecture.model(local=()).num_parameters)
    counts[WAFFLE] = waffle.model.num_global_parameters
    for method, count in counts.items():
        value = printed(table1.EXPERIMENT)[f"{data}, {method}", "# of parameters"]
        assert bool(value.note) == (value.value != count), (data, method, count)
    if data == MNIST:
        assert counts[WAFFLE] == 120_200 and counts["FedAvg"] == 158_800
    if data == FMNIST:
        assert counts["FedAvg"] == 28_880


def test_what_disagrees_in_print_is_marked():
    """Gaps by subtraction, and means of all clients from those of the two groups."""
    first, second = printed(table1.EXPERIMENT), printed(table2.EXPERIMENT)
    marked = []
    for data, own in DATA.items():
        for method in (*settings.BASELINES, WAFFLE):
            row = f"{data}, {method}"
            majority, minority, gap = (second[row, c] for c in ("Majority", "Minority", "Gap"))
            assert bool(gap.note) == (abs(majority.value - minority.value - gap.value) > 0.015)
            everybody = np.average([majority.value, minority.value], weights=own.clients[1:])
            mean = first[row, "Multimodal"]
            assert bool(mean.note) == (abs(everybody - mean.value) > 0.01)
            if mean.note:
                assert f"give {everybody:.2f} =" in mean.note
            marked += [(row, place.value) for place in (gap, mean) if place.note]
    assert ("CIFAR-10, FedProx", 32.7) in marked and ("CIFAR-10, FedProx", 44.95) not in marked
    assert {("FMNIST, q-FFL", 85.73), ("CIFAR-10, WAFFLe", 66.35)} < set(marked)
    assert len(marked) == 12  # Eleven of twelve means, and a gap.


def test_intervals_are_read_with_the_values():
    value = printed(table2.EXPERIMENT)["MNIST, FedAvg", "Minority"]
    assert (value.value, value.interval) == (67.4, 11.26)
    assert printed(table1.EXPERIMENT)["MNIST, WAFFLe", "# of parameters"].interval is None


def test_a_pipeline_has_to_meet_six_printed_numbers():
    """Each by two checks, of which one fails as soon as the number leaves the printed spread."""
    claim = baselines.EXPERIMENT.claims[-1]
    cells = [cell.name for cell in baselines.EXPERIMENT.scales["paper"].cells]
    values = (94.46, 91.57, 96.63, 67.40, 88.70, 92.95)
    assert [float(check.name.split()[-3]) for check in claim.checks[::2]] == list(values)
    spreads = (0.84, 1.42, 0.70, 11.26, 1.42, 0.84)
    for number, (value, spread) in enumerate(zip(values, spreads, strict=True)):
        for off, signs in ((0.0, [1, 1]), (1.1 * spread, [1, -1]), (-1.1 * spread, [-1, 1])):
            both = claim.checks[2 * number : 2 * number + 2]
            metrics = dict.fromkeys(
                (settings.ACCURACY, settings.MAJORITY, settings.MINORITY), (value + off) / 100
            )
            runs = {c: Run(pathlib.Path(), Status.OK, {"metrics": metrics}) for c in cells}
            assert [np.sign(check.measure.compute(runs)) for check in both] == signs


# --- Measures ---------------------------------------------------------------------------------


def test_mean_of_the_last_rounds(tmp_path):
    accuracy = [None if n % 2 else n / 100 for n in range(1, 21)]
    found = {"a": run(tmp_path, {settings.ACCURACY: accuracy})}
    assert s.last_rounds("a", settings.ACCURACY).compute(found) == pytest.approx(0.16)
    assert s.last_rounds("a", settings.ACCURACY, count=4).compute(found) == pytest.approx(0.19)


def test_a_lead_throughout_is_smoothed_and_begins_after_the_start(tmp_path):
    # The first of ten measurements is the start; the eighth, of -0.2, is one of five.
    lower = [0.9, None, 0.1, 0.1, 0.1, 0.1, None, 0.1, 0.1, 0.7, 0.1, 0.1]
    higher = [None if low is None else 0.5 for low in lower]
    found = {"a": run(tmp_path, {"lower": lower, "higher": higher})}
    least = figure6.throughout(("a", "higher"), ("a", "lower")).compute(found)
    assert least == pytest.approx((4 * 0.4 - 0.2) / 5)


def test_margins_are_what_is_printed():
    """WAFFLe's minority may be as far below all clients as in print: 95.41 - 93.87 on MNIST."""
    (on_par,) = (c for c in table1.EXPERIMENT.claims if "(MNIST) With WAFFLe" in c.text)
    cells = [c.name for c in table1.EXPERIMENT.scales["paper"].cells]
    for minority, sign in ((0.90 - 0.0153, 1), (0.90 - 0.0155, -1), (0.90 + 0.0155, -1)):
        metrics = {settings.ACCURACY: 0.90, settings.MINORITY: minority}
        runs = {c: Run(pathlib.Path(), Status.OK, {"metrics": metrics}) for c in cells}
        assert np.sign(on_par.checks[0].measure.compute(runs)) == sign
    margins = [c.checks[0].margin for c in table2.EXPERIMENT.claims if "compromised" in c.text]
    assert margins == pytest.approx([0.1744, 0.1749, 0.3103])


def test_curves_by_hand(tmp_path):
    values = [0.1, None, 0.5, 0.4, None, 0.6, 0.3]
    found = {"a": run(tmp_path, {"accuracy": values})}
    assert s.over_rounds("a", "accuracy").compute(found) == pytest.approx(0.38)
    # Moves of 0.4, 0.1, 0.2 and 0.3, of which the last two count.
    assert s.roughness("a", "accuracy").compute(found) == pytest.approx(0.25)
