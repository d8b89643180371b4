"""What executes computations outside of `tff_het.simulation.runtime.use`: this process.

Set when this module is imported, as building a process does. The runtime is opened at the first
call, and closed when the program ends. TFF's own default would start a child process, which it may
leave behind; it stays where the installed versions do not fit (see `names.unfit`).
`tff.framework.set_default_context` chooses another one.
"""

import atexit
import threading
from typing import Any

from tff_het.backend.names import tff, unfit


class _InProcess(tff.framework.SyncContext):
    """The in-process runtime, opened when it is needed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._context: Any = None

    def invoke(self, comp: Any, arg: Any) -> Any:
        with self._lock:
            if self._context is None:
                from tff_het.backend import in_process

                self._context = in_process.open_context()
                atexit.register(self._context.close)
        return self._context.invoke(comp, arg)


if unfit() is None:
    tff.framework.set_default_context(_InProcess())
