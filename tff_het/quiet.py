"""Silences TensorFlow and TensorFlow Federated and makes them faster; tidies up where they end.

Import it before TensorFlow: the variables are read when its libraries are loaded. What you have set
yourself stays: `TF_CPP_MIN_LOG_LEVEL=0`, `GRPC_ENABLE_FORK_SUPPORT=1` or `python -W default` bring
the messages back; `TF_ENABLE_ONEDNN_OPTS=0` restores the rounding of TensorFlow's own kernels.
"""

import atexit
import contextlib
import importlib.abc
import importlib.machinery
import os
import sys
import types
import warnings
from pathlib import Path
from typing import Any

# INFO only: oneDNN is on, which CPU instructions there are. Warnings and errors are still printed.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")

# gRPC otherwise comments on every subprocess that is started while a call is under way. It matters
# only to programs that go on using a channel in a forked child.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")

# TensorFlow itself leaves oneDNN off on CPUs without AVX-512's instructions for neural networks,
# where it halves the time that convolutions take.
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")

if not sys.warnoptions:
    # google.rpc, which TensorFlow Federated imports.
    warnings.filterwarnings(
        "ignore", message="pkg_resources is deprecated as an API", category=UserWarning
    )


# Imported when something of theirs is first used, which few programs do: TFF's discrete noise and
# its computations in JAX. They take a fifth of the time that all imports take.
_LATER = {"tensorflow_probability", "tensorflow_federated.python.core.environments.jax"}


class _Waiting(types.ModuleType):
    def __getattr__(self, name: str) -> Any:
        # AutoGraph and others ask all modules for such names.
        if name.startswith("__") and name != "__version__":
            raise AttributeError(name)
        self.__class__ = types.ModuleType  # type: ignore[assignment]
        spec: Any = self.__spec__
        spec.loader.run(self)
        return getattr(self, name)


class _Later(importlib.abc.Loader):
    def __init__(self, loader: Any):
        self._loader = loader

    def create_module(self, spec: Any) -> types.ModuleType:
        return _Waiting(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        """Leaves it to `run`."""

    def run(self, module: Any) -> None:
        module.__loader__ = module.__spec__.loader = self._loader
        self._loader.exec_module(module)


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        asking = sys.modules.get("tensorflow.lite.python.util")
        if name == "jax" and asking is not None and not hasattr(asking, "_xla_computation"):
            # Of all converters to TensorFlow Lite it lacks one then.
            raise ModuleNotFoundError("TensorFlow starts without JAX.", name=name)
        found = importlib.machinery.PathFinder.find_spec(name, path) if name in _LATER else None
        if found is not None:
            found.loader = _Later(found.loader)
        return found


sys.meta_path.insert(0, _Finder())

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
