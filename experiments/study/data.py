"""Data sets of cells, known by their contents."""

import functools

from experiments.run import data


class MissingDataError(Exception):
    """A data set is neither in the folder nor to be fetched."""


def fingerprint(name: str, data_dir: str | None) -> str:
    """Returns a data set's fingerprint, read from its folder; without one, it is downloaded.

    Raises MissingDataError if it is not there, ValueError if its files are damaged.
    """
    found, missing = _find(name, data_dir)
    if missing:
        raise MissingDataError(missing)
    return found


# Also what is missing is looked for once: a download may take long to fail.
@functools.cache
def _find(name: str, data_dir: str | None) -> tuple[str, str]:
    try:
        return data.load(name, data_dir).fingerprint(), ""
    except (FileNotFoundError, RuntimeError) as error:
        return "", " ".join(str(error).split())
