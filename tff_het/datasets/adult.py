"""UCI Adult (census income), prepared for fair representations."""

import pathlib

import numpy as np
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from tff_het.datasets import files
from tff_het.datasets.dataset import Dataset

_HEADER = (  # Which the files lack.
    "age,workclass,fnlwgt,education,education_num,marital_status,occupation,relationship,race,sex,"
    "capital_gain,capital_loss,hours_per_week,country,target"
)
_COLUMNS = tuple(_HEADER.split(","))
_CONTINUOUS = ("age", "education_num", "capital_gain", "capital_loss", "hours_per_week")
_CATEGORICAL = ("workclass", "education", "marital_status", "occupation", "relationship", "country")
_MAX_DIGITS = 9
_NUM_ROWS = {"adult.data": 32_561, "adult.test": 16_281}
_VALUES = {"race": ("Black", "White"), "sex": ("Female", "Male"), "target": ("<=50K", ">50K")}
_HOW = (
    "Download adult.data and adult.test from https://archive.ics.uci.edu/dataset/2/adult into"
    " <data_dir>/adult/."
)


@files.explained(_HOW)
def load(data_dir: pathlib.Path | None) -> Dataset:
    """Loads Adult (Kohavi 1996): does a person earn more than 50,000 dollars a year?

    The preparation is that of https://github.com/equialgo/fairness-in-ml, on which the fairness
    experiment of LG-FedAvg (Liang et al. 2019) builds, and gives its 93 inputs: only the rows of
    race White or Black; `fnlwgt` (a sampling weight), race and sex are no inputs; a missing value
    ('?') is a category 'Unknown' of its own; of each categorical column's categories (sorted) the
    first has no indicator, being the case in which all others are 0. Five standardised continuous
    columns come first, then 88 indicators. It differs in that indicators stay 0 or 1 (there they
    are standardised too). Categories, means and deviations come from adult.data alone.

    Args:
      data_dir: Holds `adult/adult.data` and `adult/adult.test`.

    Returns:
      30,940 training rows (adult.data) and 15,507 test rows (adult.test), in the files' order:
      `x` float32 [n, 93]; `y` 1 for more than 50K; the protected `race` (int32, 1: White,
      0: Black) and `sex` (int32, 1: Male, 0: Female).

    Raises:
      FileNotFoundError: A file is missing, or data_dir is None.
      ValueError: A file is truncated or corrupt, or adult.test has a category that adult.data
        lacks.
    """
    folder = files.folder(data_dir, "adult")
    train, test = (_read(folder, file_name) for file_name in _NUM_ROWS)

    scaler = StandardScaler().fit(_numbers(train))
    encoder = OneHotEncoder(drop="first", sparse_output=False, dtype=np.float32)
    encoder.fit(_categories(train))

    def examples(table: dict[str, np.ndarray], file_name: str) -> dict[str, np.ndarray]:
        try:
            indicators = encoder.transform(_categories(table))
        except ValueError as error:
            expected = "the categories of adult.data"
            raise files.corrupt(folder / file_name, expected, error) from error
        inputs = np.concatenate([scaler.transform(_numbers(table)), indicators], axis=1)
        return {
            "x": inputs.astype(np.float32),
            "y": (table["target"] == ">50K").astype(np.int32),
            "race": (table["race"] == "White").astype(np.int32),
            "sex": (table["sex"] == "Male").astype(np.int32),
        }

    return Dataset(
        "adult",
        examples(train, "adult.data"),
        examples(test, "adult.test"),
        _VALUES["target"],
        f"UCI files {folder}",
    )


def _numbers(table: dict[str, np.ndarray]) -> np.ndarray:
    return np.stack([table[name] for name in _CONTINUOUS], axis=1).astype(np.float64)


def _categories(table: dict[str, np.ndarray]) -> np.ndarray:
    return np.stack([table[name] for name in _CATEGORICAL], axis=1)


def _read(folder: pathlib.Path, file_name: str) -> dict[str, np.ndarray]:
    """The rows White or Black of one file as text, by column."""
    path = files.find(folder, file_name)
    rows = []
    num_rows = 0
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    for number, line in enumerate(lines, start=1):
        if not line.strip() or line.startswith("|"):  # adult.test starts with a '|' comment.
            continue
        num_rows += 1
        fields = [field.strip() for field in line.split(",")]
        _check_row(path, number, fields)
        fields[-1] = fields[-1].removesuffix(".")  # adult.test writes '>50K.'.
        row = ["Unknown" if field == "?" else field for field in fields]
        if row[_COLUMNS.index("race")] in _VALUES["race"]:
            rows.append(row)
    if num_rows != _NUM_ROWS[file_name]:
        raise files.corrupt(path, f"{_NUM_ROWS[file_name]} rows", f"{num_rows} rows")
    columns = np.array(rows).reshape(-1, len(_COLUMNS)).T
    return dict(zip(_COLUMNS, columns, strict=True))


def _check_row(path: pathlib.Path, number: int, fields: list[str]) -> None:
    """Refuses a row that is cut off or garbled, naming its line."""
    if len(fields) != len(_COLUMNS):
        expected = f"{len(_COLUMNS)} comma-separated fields in line {number}"
        raise files.corrupt(path, expected, len(fields))
    row = dict(zip(_COLUMNS, fields, strict=True))
    for name in _CONTINUOUS:
        if not row[name].isdecimal() or len(row[name]) > _MAX_DIGITS:
            expected = f"a whole number of at most {_MAX_DIGITS} digits as {name} in line {number}"
            raise files.corrupt(path, expected, f"{row[name]!r:.200}")
    for name, value in (("sex", row["sex"]), ("target", row["target"].removesuffix("."))):
        if value not in _VALUES[name]:
            expected = f"{' or '.join(_VALUES[name])} as {name} in line {number}"
            raise files.corrupt(path, expected, repr(value))
