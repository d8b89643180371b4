"""Personalised and heterogeneity-aware federated learning on TensorFlow Federated."""
