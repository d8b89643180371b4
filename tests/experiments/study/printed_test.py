"""Printed values against the papers' texts, where these are: the folder TFF_HET_PAPERS_DIR."""

import dataclasses
import os
import pathlib
import re

import pytest

import experiments
from experiments.study import papers
from experiments.study.experiment import Experiment

# Paper -> its text.
TEXTS = {
    "cgau": "cgau_rieger2020.txt",
    "edge_ensembles": "edge_ensembles_qian2019.txt",
    "hdafl": "hdafl_yang2020.txt",
    "lg_fedavg": "lg_fedavg_liang2019.txt",
    "waffle": "waffle_2020.txt",
}
EXPERIMENTS = [one for one in papers.all_experiments() if one.paper in TEXTS]


def wrong(experiment: Experiment, text: str) -> list[str]:
    """What the paper does not print as the experiment says."""
    words = " ".join(text.split())
    found = []
    for printed in experiment.printed:
        if printed.quote not in words:
            found.append(f"{printed.place}: no {printed.quote!r} in the text")
        numbers = [float(n.replace(",", "")) for n in re.findall(r"\d[\d,]*\.?\d*", printed.quote)]
        if printed.value not in [*numbers, *(-n for n in numbers)]:
            found.append(f"{printed.place}: no {printed.value} in {printed.quote!r}")
    return found


@pytest.fixture(params=EXPERIMENTS, ids=lambda e: e.id)
def experiment(request) -> Experiment:
    return request.param


@pytest.fixture
def text(experiment) -> str:
    folder = os.environ.get("TFF_HET_PAPERS_DIR")
    if not folder:
        pytest.skip("TFF_HET_PAPERS_DIR is not set: it names the folder of the papers' texts")
    return (pathlib.Path(folder) / TEXTS[experiment.paper]).read_text()


def test_printed_values_are_the_papers(experiment, text):
    assert wrong(experiment, text) == []


def test_a_typo_in_a_value_or_quote_is_found(experiment, text):
    for index, printed in enumerate(experiment.printed):
        for typo in (
            dataclasses.replace(printed, value=printed.value + 0.01),
            dataclasses.replace(printed, quote=printed.quote.replace("7", "1")),
        ):
            if typo != printed:
                values = list(experiment.printed)
                values[index] = typo
                assert wrong(dataclasses.replace(experiment, printed=tuple(values)), text)


def test_a_value_that_its_quote_lacks_is_found_without_the_text(experiment):
    quotes = " ".join(printed.quote for printed in experiment.printed)
    assert wrong(experiment, quotes) == []
    if experiment.printed:
        first, *rest = experiment.printed
        typo = dataclasses.replace(first, value=first.value + 0.01)
        assert wrong(dataclasses.replace(experiment, printed=(typo, *rest)), quotes)


@pytest.mark.parametrize("paper", TEXTS)
def test_sentences_behind_claims_are_the_papers(paper):
    if not (folder := os.environ.get("TFF_HET_PAPERS_DIR")):
        pytest.skip("TFF_HET_PAPERS_DIR is not set: it names the folder of the papers' texts")
    words = " ".join((pathlib.Path(folder) / TEXTS[paper]).read_text().split())
    table = pathlib.Path(experiments.__path__[0], paper, "claims.md").read_text(encoding="utf-8")
    rows = [line.split(" | ") for line in table.splitlines() if line.startswith("| ")][1:]
    # Sentences without a check stand in a table of two columns.
    cells = [row[1] if len(row) > 2 else row[0] for row in rows]
    quotes = [quote for cell in cells for quote in re.findall(r'"([^"]+)"', cell)]
    assert len(quotes) > 8
    assert [quote for quote in quotes if quote not in words] == []
