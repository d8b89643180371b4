"""Where tests find the real data sets."""

import os
import pathlib

import pytest


@pytest.fixture
def real_data_dir() -> pathlib.Path:
    """The folder of real data sets; skips where there is none."""
    value = os.environ.get("TFF_HET_DATA_DIR")
    if not value:
        pytest.skip("TFF_HET_DATA_DIR is not set: it names the folder of the real data sets")
    if not pathlib.Path(value).is_dir():
        pytest.skip(f"TFF_HET_DATA_DIR={value!r} does not exist")
    return pathlib.Path(value)
