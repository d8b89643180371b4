"""Progress of a job: a bar of examples done, and how many in a second."""

import contextlib
import threading
from collections.abc import Callable, Iterator

from tqdm import tqdm

_SECONDS = 2.0  # Between two looks at what workers elsewhere have finished.
_bar: tqdm | None = None
_lock = threading.Lock()


@contextlib.contextmanager
def shown(total: int, finished: Callable[[], int]) -> Iterator[None]:
    """Shows the bar on stderr.

    Args:
      total: How many examples there are.
      finished: Says how many are in files; all that is known of workers in other processes.
    """
    global _bar
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(_SECONDS):
            _advance(finished)

    with tqdm(total=total, unit=" examples", dynamic_ncols=True) as _bar:
        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        try:
            yield
            _advance(finished)
        finally:
            ended.set()
            watcher.join()
            _bar = None


def report(count: int) -> None:
    """Adds examples that are done; does nothing where workers are other processes."""
    with _lock:
        if _bar is not None:
            _bar.update(count)


def _advance(finished: Callable[[], int]) -> None:
    count = finished()
    with _lock:
        if _bar is not None and count > _bar.n:  # Else this process knows better.
            _bar.update(count - _bar.n)
