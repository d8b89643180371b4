"""The one door to what moves in TensorFlow and TensorFlow Federated (TFF).

Everything else takes `tff` and `keras` from `names`, and a runtime from here: a newer TFF is a
change of the lock file and of this package. `names` holds the packages, `internals` all that is not
public interface, `in_process` the runtime in this process, `building_blocks` the compiled form that
it starts from, and `default` makes it the default.

What a newer TFF changes, read in its repository (63f73da of August 2026, which needs Python 3.12,
TensorFlow 2.21, Keras 3.12 and NumPy 2); `names` follows, except where it says otherwise:

| TFF 0.87 | there |
|---|---|
| `tff.federated_map` and its like, `tff.CLIENTS`, `tff.to_type`, types | `federated_language` |
| `tff.framework`: contexts and building blocks | `federated_language.framework` |
| `tff.aggregators` | `tensorflow_federated.python.aggregators` |
| `tff.types.type_to_tf_tensor_specs` | `tff.tensorflow` (since 0.88) |
| `tff.structure` | most of it gone: Python containers |
| `tff.learning.compression_aggregator` | removed: `--aggregator=compressed` goes |
| `tff.learning.models.ReconstructionModel` | removed: `fed_recon`'s test compares with it |
| `tf.keras`, which is Keras 2 | Keras 3; Keras 2 is the package `tf_keras` |
| `core.impl.types`, `core.impl.utils` (in `internals`) | `core.environments.tensorflow_backend` |
| `data/worker_binary` | the same |
"""

import importlib.util
import pathlib


def worker_binary() -> pathlib.Path:
    """Returns the path of TFF's worker, the program behind its own executor.

    Does not import TFF: a program that only starts workers needs none of it.
    """
    spec = importlib.util.find_spec("tensorflow_federated")
    assert spec is not None and spec.origin is not None
    return pathlib.Path(spec.origin).parent / "data" / "worker_binary"
