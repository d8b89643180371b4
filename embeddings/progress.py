"""Show the progress of a job: examples done, and examples per second."""

import contextlib
import threading
from collections.abc import Callable, Iterator

from tqdm import tqdm

_SECONDS = 2.0  # Between two counts of the finished files of other processes.
_bar: tqdm | None = None
_lock = threading.Lock()


@contextlib.contextmanager
def shown(total: int, finished: Callable[[], int]) -> Iterator[None]:
    """Shows a progress bar on stderr.

    Args:
      total: Number of examples.
      finished: Returns the number of examples in files, all that is known of other processes.
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
    """Adds finished examples to the bar; has no effect in other processes."""
    with _lock:
        if _bar is not None:
            _bar.update(count)


def _advance(finished: Callable[[], int]) -> None:
    count = finished()
    with _lock:
        if _bar is not None and count > _bar.n:  # Otherwise this process knows better.
            _bar.update(count - _bar.n)
