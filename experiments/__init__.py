"""Programs: training, benchmarks, and the tables and figures of the papers."""

import atexit
import gc
import os

from tff_het import quiet as quiet  # Before a program imports TensorFlow.

# Clients (and, in evaluation, their models) run beside each other, each on one thread: faster than
# parallel operations, and no result depends on the number of cores. Read when TensorFlow starts.
os.environ.setdefault("TF_NUM_INTRAOP_THREADS", "1")

# TensorFlow's modules are half a million objects that stay to the end. Python would look through
# all of them time and again while they are imported, and once more at exit: 1.5 seconds.
gc.set_threshold(50_000)
atexit.register(gc.freeze)
