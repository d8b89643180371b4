"""Jobs that compute embeddings of raw data with published networks."""

import logging

from tff_het import quiet as quiet  # Before a program imports TensorFlow.

# Beam says so about a Google client of which nothing here is used, whenever it is imported.
logging.getLogger().addFilter(lambda record: "apitools not found" not in record.getMessage())
