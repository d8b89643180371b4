"""Programs: training, benchmarks, and the tables and figures of the papers."""

from tff_het import quiet as quiet  # Before a program imports TensorFlow.
