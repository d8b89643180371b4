"""What all tests share: who executes computations, and where real data sets are."""

import os
import pathlib
import signal
import sys
from collections.abc import Iterator

import pytest

from experiments.run import options
from tff_het.backend.names import tff
from tff_het.simulation import runtime

# What is started in the background ignores interrupts, and so would all that tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Names a failure at once: a run that is stopped at its time limit gives no summary."""
    if report.failed and "PYTEST_XDIST_WORKER" not in os.environ:
        print(f"\nFAILED {report.nodeid} ({report.when})", flush=True)


_PLUGINS = ("experiments.boards.theirs", "experiments.boards.flower_scaffold")


@pytest.fixture(autouse=True)
def _plugins_of_one_test() -> Iterator[None]:
    """Takes away what the boards' plugins register: other tests count all registered names."""
    yield
    for plugin in {*_PLUGINS} & {*sys.modules}:
        file = sys.modules[plugin].__file__
        for registry in options.REGISTRIES.values():
            for name in [name for name in registry if registry.origin(name) == file]:
                del registry._places[name]
        del sys.modules[plugin]


@pytest.fixture(scope="session")
def worker() -> Iterator[runtime.WorkerContext]:
    """Executes computations from the first test that asks for it to the end of the session."""
    with runtime.worker(clients_in_parallel=2) as context:
        yield context


_EACH_RUNTIME = ("in_process", pytest.param("worker", marks=pytest.mark.slow))


@pytest.fixture(scope="module", params=_EACH_RUNTIME)
def each_runtime(request) -> Iterator[str]:
    """Executes a module's computations on one runtime after the other; yields its name."""
    if request.param == "worker":  # There already, and slow to start.
        with tff.framework.get_context_stack().install(request.getfixturevalue("worker")):
            yield request.param
    else:
        with runtime.use(request.param, clients_in_parallel=2):
            yield request.param


@pytest.fixture(scope="session")
def data_dir() -> pathlib.Path:
    """The folder of real data sets, `$TFF_HET_DATA_DIR`; skips where there is none."""
    value = os.environ.get("TFF_HET_DATA_DIR")
    if not value:
        pytest.skip("TFF_HET_DATA_DIR is not set: it names the folder of the real data sets")
    if not pathlib.Path(value).is_dir():
        pytest.skip(f"TFF_HET_DATA_DIR={value!r} does not exist")
    return pathlib.Path(value)
