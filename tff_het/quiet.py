"""Silences TensorFlow and TensorFlow Federated and shortens their start; tidies up where they end.

Import it before TensorFlow: the variables are read when its libraries are loaded. What you have set
yourself stays: `TF_CPP_MIN_LOG_LEVEL=0`, `GRPC_ENABLE_FORK_SUPPORT=1` or `python -W default` bring
the messages back.
"""

import atexit
import contextlib
import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
import warnings
from pathlib import Path
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


# Imported when something of theirs is first used, which few programs do: TFF's discrete noise and
# its computations in JAX. They take a fifth of the time that all imports take.
_LATER = {"tensorflow_probability", "tensorflow_federated.python.core.environments.jax"}


class _Later(importlib.abc.MetaPathFinder):
    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        asking = sys.modules.get("tensorflow.lite.python.util")
        if name == "jax" and asking is not None and not hasattr(asking, "_xla_computation"):
            # Of all converters to TensorFlow Lite it lacks one then.
            raise ModuleNotFoundError("TensorFlow starts without JAX.", name=name)
        found = importlib.machinery.PathFinder.find_spec(name, path) if name in _LATER else None
        if found is not None and found.loader is not None:
            found.loader = importlib.util.LazyLoader(found.loader)
        return found


sys.meta_path.insert(0, _Later())

_AUTOGRAPH = "__autograph_generated_file"


def _remove_compiled() -> None:
    """Removes what Python compiled of the modules that AutoGraph wrote into the temporary folder.

    TensorFlow removes the modules themselves, and leaves these: dozens for each program.
    """
    written = [module for name, module in sys.modules.items() if name.startswith(_AUTOGRAPH)]
    compiled = [Path(module.__cached__) for module in written if module.__cached__]
    for path in compiled:
        path.unlink(missing_ok=True)
    for folder in {path.parent for path in compiled}:
        with contextlib.suppress(OSError):  # Others have files there.
            folder.rmdir()


atexit.register(_remove_compiled)
