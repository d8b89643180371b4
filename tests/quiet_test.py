"""What TensorFlow and TFF import when they start, and that the rest can still be used."""

import subprocess
import sys

import pytest

PROGRAM = """
import sys
import tff_het
import numpy as np
from tff_het.backend.names import tff

print(sorted({"jax", "tensorflow_probability.python"} & {*sys.modules}))

@tff.jax.computation(np.int32)
def add_one(x):
    return x + 1

import tensorflow_probability
print(add_one.type_signature, tensorflow_probability.distributions.Bernoulli.__name__)
"""


@pytest.mark.slow
def test_what_few_programs_use_is_imported_when_it_is_used():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True)
    assert done.stdout == "[]\n(int32 -> int32) Bernoulli\n", done.stderr
