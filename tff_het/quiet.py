"""Silences the start-up noise of TensorFlow and TensorFlow Federated, and nothing else.

Import it before TensorFlow: the variables are read when its libraries are loaded. What you have set
yourself stays: `TF_CPP_MIN_LOG_LEVEL=0`, `GRPC_ENABLE_FORK_SUPPORT=1` or `python -W default` bring
the messages back.
"""

import atexit
import os
import sys
import warnings
from typing import Any

# INFO only: oneDNN is on, which CPU instructions there are. Warnings and errors are still printed.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")

# gRPC otherwise comments on every subprocess that is started while a call is under way. It matters
# only to programs that go on using a channel in a forked child.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")

if not sys.warnoptions:
    # google.rpc, which TensorFlow Federated imports.
    warnings.filterwarnings(
        "ignore", message="pkg_resources is deprecated as an API", category=UserWarning
    )


def _drop_default_context() -> None:
    """Releases TensorFlow Federated's own context while the modules it needs still exist.

    Left to the interpreter's teardown it prints an `AttributeError`, and leaves the worker behind
    that it starts when a computation is called outside the runtimes of this package.
    """
    tff = sys.modules.get("tensorflow_federated")
    if tff is None or not hasattr(tff, "framework"):  # Never imported, or not to the end.
        return

    base: Any = tff.framework.SyncContext

    class NoContext(base):
        def invoke(self, comp: object, arg: object) -> object:
            raise RuntimeError("The program is ending: computations can no longer be called.")

    tff.framework.set_default_context(NoContext())


atexit.register(_drop_default_context)
