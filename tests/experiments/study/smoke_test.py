"""Every table and figure in its smallest form, one after another in one process."""

import math

import pytest

from experiments import reproduce
from experiments.study import page, papers, runner, sections
from experiments.study.experiment import Experiment
from experiments.study.store import Status

# Run by the short test command as well.
NOT_SLOW = ("hdafl.table5", "lg_fedavg.table1")
EXPERIMENTS = [
    pytest.param(one, id=one.id, marks=[] if one.id in NOT_SLOW else pytest.mark.slow)
    for one in papers.all_experiments()
]

# Layers in rows of Figure 10 of the edge ensembles that scale smoke's network does not have.
LACKING = (", conv_3", ", conv_4")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """One for all: what a table has run, the next finds done."""
    return tmp_path_factory.mktemp("smoke")


@pytest.fixture(scope="module", params=EXPERIMENTS)
def experiment(request) -> Experiment:
    return request.param


@pytest.fixture(scope="module")
def section(experiment, folder) -> sections.Section:
    assert reproduce.main([experiment.id, "--scale=smoke", f"--output_dir={folder}"]) == 0
    found = runner.read(experiment, "smoke", folder)
    assert found is not None
    return sections.section(experiment, found)


def test_everything_ran(section):
    assert section.counts == f"{len(section.results.runs)} {Status.OK.value}"


def test_every_printed_place_is_filled_with_a_finite_number(experiment, section):
    entries = {e[:2]: e for entries in section.tables.values() for e in entries}
    assert {(p.row, p.column) for p in experiment.printed} <= set(entries)
    for place, entry in entries.items():
        if place[0].endswith(LACKING):
            assert entry.ours == "not determined"
            continue
        assert entry.found is not None, f"{place}: {entry.ours}"
        assert math.isfinite(entry.found.mean), place


def test_figures_are_drawn_and_the_page_has_all(experiment, section):
    assert all(section.pictures)
    assert len(section.pictures) == len(experiment.figures)
    assert f'id="{section.id}"' in page.page([section])
