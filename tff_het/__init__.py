"""Personalised and heterogeneity-aware federated learning on TensorFlow Federated."""

from tff_het import quiet as quiet  # Before anything imports TensorFlow.
