"""Lets SIGINT and SIGTERM stop training after the current round."""

import signal
import threading
from types import FrameType


class StopRequest:
    """Context manager in which the first signal only asks; a second SIGINT interrupts at once.

    In threads other than the main one, where Python has no signal handlers, it
    does nothing.
    """

    def __init__(self, *, listen: bool = True) -> None:
        """Initialises it.

        Args:
          listen: Whether to take the signals; otherwise they do what they did before.
        """
        self._listen = listen
        self.signal: signal.Signals | None = None
        self._before: dict[signal.Signals, object] = {}

    def __bool__(self) -> bool:
        return self.signal is not None

    def __enter__(self) -> "StopRequest":
        if self._listen and threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, *exc_info) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]

    def _handle(self, number: int, frame: FrameType | None) -> None:
        del frame
        if self.signal is not None and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.signal = self.signal or signal.Signals(number)
