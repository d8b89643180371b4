"""Programs: training, benchmarks, and the tables and figures of the papers."""

import os

from tff_het import quiet as quiet  # Before a program imports TensorFlow.

# Clients (and, in evaluation, their models) run beside each other, each on one thread: faster than
# parallel operations, and no result depends on the number of cores. Read when TensorFlow starts.
os.environ.setdefault("TF_NUM_INTRAOP_THREADS", "1")
