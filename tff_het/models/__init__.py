"""Models: networks, and which of their variables never leave the client."""

from tff_het.models.registry import NETWORKS

__all__ = ["NETWORKS"]
