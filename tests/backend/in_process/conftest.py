"""Everything is executed by TFF's worker and in this process, on 1 and 2 threads."""

import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from tff_het.backend.in_process import InProcessContext
from tff_het.backend.names import tff

THREADS = (1, 2)

Everywhere = Callable[..., Any]


def assert_same(found: Any, wanted: Any, check: Callable[..., None], path: str = "") -> None:
    """Checks containers and types leaf by leaf, and values with `check`."""
    assert type(found) is type(wanted), path
    if isinstance(wanted, dict):
        assert list(found) == list(wanted), path
        for name in wanted:
            assert_same(found[name], wanted[name], check, f"{path}.{name}")
    elif isinstance(wanted, list | tuple):
        assert len(found) == len(wanted), path
        for index, (a, b) in enumerate(zip(found, wanted, strict=True)):
            assert_same(a, b, check, f"{path}[{index}]")
    elif hasattr(wanted, "__attrs_attrs__"):
        for field in wanted.__attrs_attrs__:
            name = field.name
            assert_same(getattr(found, name), getattr(wanted, name), check, f"{path}.{name}")
    else:
        if isinstance(wanted, np.ndarray | np.generic):
            assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape), path
        if isinstance(wanted, np.ndarray):
            assert found.flags.writeable == wanted.flags.writeable, path
        check(found, wanted, path)


def _equal(found: Any, wanted: Any, path: str) -> None:
    np.testing.assert_array_equal(found, wanted, path)


def _close(found: Any, wanted: Any, path: str, atol: float = 1e-6) -> None:
    if isinstance(wanted, bytes) or np.asarray(wanted).dtype == object:
        _equal(found, wanted, path)
    else:
        np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=atol, err_msg=path)


@pytest.fixture(scope="session")
def same() -> Callable[[Any, Any], None]:
    """Checks containers, types and bits."""
    return lambda found, wanted: assert_same(found, wanted, _equal)


@pytest.fixture(scope="session")
def alike() -> Callable[[Any, Any], None]:
    """Checks containers, types, and values but for rounding."""
    return lambda found, wanted: assert_same(found, wanted, _close)


@pytest.fixture(scope="session")
def contexts() -> Iterator[dict[int, InProcessContext]]:
    """Contexts in this process by their number of threads."""
    made = {count: InProcessContext(count) for count in THREADS}
    yield made
    for context in made.values():
        context.close()


@pytest.fixture
def in_process(contexts) -> Iterator[InProcessContext]:
    """Executes the test's computations in this process, on two threads."""
    with tff.framework.get_context_stack().install(contexts[2]):
        yield contexts[2]


@pytest.fixture(scope="session")
def everywhere(worker, contexts, same) -> Everywhere:
    """Runs a program everywhere; checks and returns what it gives."""

    def run(program: Callable[[], Any], atol: float = 1e-6) -> Any:
        with tff.framework.get_context_stack().install(worker):
            wanted = program()
        found = []
        for context in contexts.values():
            with tff.framework.get_context_stack().install(context):
                found.append(program())
        assert_same(found[0], wanted, functools.partial(_close, atol=atol))
        for other in found[1:]:
            same(other, found[0])
        return found[0]

    return run
