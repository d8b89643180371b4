"""Methods are tested in this process; `backend/in_process/methods_test.py` has TFF's worker."""

from collections.abc import Iterator

import pytest

from tff_het.simulation import runtime


@pytest.fixture(scope="module", autouse=True)
def _runtime() -> Iterator[None]:
    with runtime.use("in_process", clients_in_parallel=2):
        yield
