"""What stands on the page, in the CSV and in the Markdown."""

import csv
import dataclasses
import html.parser
import re

import pytest


class Structure(html.parser.HTMLParser):
    """Checks that what is opened is closed, and notes what would be fetched."""

    def __init__(self):
        super().__init__()
        self.open, self.fetched = [], []

    def handle_starttag(self, tag, attributes):
        if tag not in ("meta", "br", "img"):
            self.open.append(tag)
        for name, value in attributes:
            if name in ("src", "href") and not value.startswith(("#", "data:")):
                self.fetched.append(value)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.fixture
def done(harness, make):
    harness.run(make())
    return harness


def test_page_is_well_formed_and_fetches_nothing(done, make):
    page = done.report(make()).read_text()
    parser = Structure()
    parser.feed(page)
    parser.close()
    assert parser.open == [] and parser.fetched == []
    assert not re.search(r"url\(|@import|<script", page)
    assert "prefers-color-scheme: dark" in page and 'name="viewport"' in page


def test_every_table_scrolls_in_a_box_of_its_own(done, make):
    page = done.page(make())
    assert page.count("<table>") == page.count('<div class="scroll" tabindex="0"><table>') > 2


def test_page_has_ours_the_papers_and_the_verdict(done, make):
    page = done.page(make())
    assert re.search(r"0\.7\d\d \[0\.\d{3}, 0\.\d{3}\]", page)
    assert "; paper 0.800 ± 0.100*</td>" in page
    assert "adds up to 1" in page
    assert '<strong class="verdict holds">holds</strong>: a exceeds b' in page
    assert "The paper's figure: A line as well." in page
    assert "data:image/svg+xml;base64," in page
    assert "python -m experiments.reproduce hdafl.made_up --scale=smoke" in page
    assert "Few." in page


def test_csv_has_a_line_for_each_place(done, make):
    folder = done.report(make()).parent
    rows = list(csv.DictReader((folder / "hdafl-made_up-smoke.csv").open()))
    assert [row["row"] for row in rows] == ["A", "B"]
    assert rows[0]["paper"] == "0.800 ± 0.100" and rows[0]["seeds"] == "3"
    assert float(rows[0]["low"]) < float(rows[0]["ours"]) < float(rows[0]["high"])


def test_markdown_has_table_and_verdict(done, make):
    folder = done.report(make()).parent
    text = (folder / "hdafl-made_up-smoke.md").read_text()
    assert "| A | 0.7" in text and "**holds**: a exceeds b" in text


def test_cell_with_fewer_seeds_is_not_unfinished(harness, make):
    """A cell may be run with some of the seeds only; the page says so, and misses nothing."""
    made = make()
    scale = made.scales["smoke"]
    first, second, third = scale.cells
    fewer = dataclasses.replace(scale, cells=(first, dataclasses.replace(second, num_seeds=2)))
    made = dataclasses.replace(made, scales={"smoke": fewer})
    assert len(harness.run(made)) == 3 + 2 and third.num_seeds is None
    page = harness.page(made)
    assert re.search(r"\(2 seeds\)</t[dh]>\s*<td>0\.5\d\d \[0\.\d{3}, 0\.\d{3}\]", page)
    assert "5 ok" in page and "of 3 seeds" not in page and "not run" not in page
