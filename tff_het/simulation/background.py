"""Writing beside the next round, in order and one thing at a time."""

import concurrent.futures
from collections.abc import Callable


class Writer:
    """Runs tasks one after another in a background thread.

    No more than one is ever outstanding, so a slow disk slows the program down
    instead of filling memory. An error of a task is raised by the next call.
    """

    def __init__(self) -> None:
        self._pool = concurrent.futures.ThreadPoolExecutor(1, thread_name_prefix="writer")
        self._pending: concurrent.futures.Future | None = None

    def submit(self, task: Callable[[], None]) -> None:
        """Waits for the task before, then starts this one."""
        self.wait()
        self._pending = self._pool.submit(task)

    def wait(self) -> None:
        """Waits until nothing is outstanding.

        Raises:
          Exception: What the task raised.
        """
        pending, self._pending = self._pending, None
        if pending is not None:
            pending.result()

    def close(self) -> None:
        """Ends the thread, after the task under way; does not raise its error."""
        self._pool.shutdown(wait=True)
