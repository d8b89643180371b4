"""Data sets of cells: their sources and contents."""

import functools
from typing import NamedTuple

from experiments.run import data


class Available(NamedTuple):
    """A data set that is there; `data_dir` is None if `datasets.load` downloads it."""

    data_dir: str | None
    fingerprint: str


class MissingDataError(Exception):
    """A data set is neither in the folder nor to be fetched."""


def find(name: str, data_dir: str | None) -> Available:
    """Looks for a data set in a folder of data sets; without one, where it can be downloaded.

    Raises:
      MissingDataError: It is not there.
      ValueError: Its files are damaged.
    """
    found = _find(name, data_dir)
    if isinstance(found, str):
        raise MissingDataError(found)
    return found


# Also what is missing is looked for once: a download may take long to fail.
@functools.cache
def _find(name: str, data_dir: str | None) -> Available | str:
    try:
        return Available(data_dir, data.load(name, data_dir).fingerprint())
    except (FileNotFoundError, RuntimeError) as error:
        return " ".join(str(error).split())
