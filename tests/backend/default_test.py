"""Computations outside of any runtime: executed in the program, which ends cleanly."""

import subprocess
import sys

PROGRAM = """
from tff_het import datasets, methods, partitions
from tff_het.clients import Population
from tff_het.learning.local_training import LocalTraining
from tff_het.models import architectures
from tff_het.backend.names import tff

data = datasets.load("digits")
dealt = partitions.make("iid", data.train, data.test, num_clients=3, seed=0)
network = architectures.make("mlp", Population.from_partition(data, dealt).element_spec, 10)
training = LocalTraining(tff.learning.optimizers.build_sgdm(0.1), batch_size=10, epochs=1)
state = methods.build("hdafl", network, training, seed=0).initialize()
context = tff.framework.get_context_stack().current
print(type(context).__name__, len(state.weights.trainable))
"""


def test_a_program_without_a_runtime_ends_cleanly():
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=100, check=False
    )
    assert (run.returncode, run.stdout, run.stderr) == (0, "_InProcess 2\n", "")
