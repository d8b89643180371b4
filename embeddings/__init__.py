"""Compute embeddings of raw audio and images with published networks."""

import logging

from tff_het import quiet as quiet  # Before a program imports TensorFlow.

# Beam logs this on every import, about a Google client that is not used here.
logging.getLogger().addFilter(lambda record: "apitools not found" not in record.getMessage())
