"""The preparation of Adult, on a few rows written here and on the real files."""

import numpy as np
import pytest

from tff_het import datasets
from tff_het.datasets import adult

TRAIN = """\
39, State-gov, 7, Bachelors, 13, Never-married, Sales, Wife, White, Male, 2174, 0, 40, Cuba, <=50K
50, ?, 83311, HS-grad, 9, Divorced, Sales, Husband, Black, Female, 0, 0, 13, Peru, >50K
30, Private, 1, 11th, 7, Divorced, Tech-support, Wife, Other, Male, 0, 7, 20, Laos, >50K
20, Private, 5, Bachelors, 13, Divorced, Sales, Wife, White, Female, 0, 5, 40, ?, <=50K

"""
TEST = """\
|1x3 Cross validator
25, Private, 9, HS-grad, 9, Divorced, Sales, Wife, Black, Male, 0, 0, 40, Peru, >50K.
25, Private, 9, HS-grad, 9, Divorced, Sales, Wife, White, Female, 0, 0, 40, Cuba, <=50K.
"""


@pytest.fixture
def write(tmp_path, monkeypatch):
    monkeypatch.setattr(adult, "_NUM_ROWS", {"adult.data": 4, "adult.test": 2})
    (tmp_path / "adult").mkdir()

    def write(train=TRAIN, test=TEST):
        (tmp_path / "adult" / "adult.data").write_text(train)
        (tmp_path / "adult" / "adult.test").write_text(test)
        return tmp_path

    return write


def test_prepares_as_documented(write):
    data = datasets.load("adult", write())
    # Rows White or Black only. Indicators of all but the first of each column's sorted categories:
    # Private, State-gov, Unknown -> 2 (after 'Private'); Bachelors, HS-grad -> 1;
    # Divorced, Never-married -> 1; Sales -> 0; Husband, Wife -> 1; Cuba, Peru, Unknown -> 2.
    assert data.train["x"].shape == (3, 5 + 7) and data.train["x"].dtype == np.float32
    assert data.train["x"][:, 5:].tolist() == [
        [1, 0, 0, 1, 1, 0, 0],
        [0, 1, 1, 0, 0, 1, 0],
        [0, 0, 0, 0, 1, 0, 1],
    ]
    ages = np.array([39, 50, 20])
    np.testing.assert_allclose(data.train["x"][:, 0], (ages - ages.mean()) / ages.std(), rtol=1e-5)
    np.testing.assert_allclose(data.test["x"][:, 0], (25 - ages.mean()) / ages.std(), rtol=1e-5)
    assert data.train["y"].tolist() == [0, 1, 0] and data.test["y"].tolist() == [1, 0]
    assert data.train["race"].tolist() == [1, 0, 1] and data.train["sex"].tolist() == [1, 0, 0]
    assert data.class_names == ("<=50K", ">50K")


@pytest.mark.parametrize(
    ("train", "parts"),
    [
        (TRAIN[:60], ("adult.data", "line 1", "15")),
        (TRAIN.split("20, Private")[0], ("adult.data", "4 rows", "3 rows")),
        (TRAIN.replace("<=50K", "<=50"), ("line 1", "'<=50'")),
        (TRAIN.replace("39,", "thirty,"), ("age in line 1", "'thirty'")),
        (TRAIN.replace("50, ?", "?, ?"), ("age in line 2", "'?'")),
        (TRAIN.replace("Black, Female", "Black, F"), ("sex in line 2", "'F'")),
    ],
)
def test_broken_rows_are_refused_naming_the_line(write, train, parts):
    with pytest.raises(ValueError) as error:
        datasets.load("adult", write(train=train))
    for part in (*parts, "archive.ics.uci.edu"):
        assert part in str(error.value)


def test_category_that_training_rows_lack_is_refused(write):
    with pytest.raises(ValueError, match=r"adult\.test.*Atlantis"):
        datasets.load("adult", write(test=TEST.replace("Peru", "Atlantis")))


def test_real_files(data_dir):
    data = datasets.load("adult", data_dir)
    assert data.train["x"].shape == (30_940, 93) and data.test["x"].shape == (15_507, 93)
    np.testing.assert_allclose(data.train["x"][:, :5].mean(axis=0), 0, atol=1e-4)
    np.testing.assert_allclose(data.train["x"][:, :5].std(axis=0), 1, atol=1e-3)
    assert set(np.unique(data.train["x"][:, 5:])) == {0, 1}
    assert data.train["race"].sum() == 27_816 and data.train["sex"].sum() == 20_743
