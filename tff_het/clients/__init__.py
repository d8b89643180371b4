"""The clients of a federation and the examples that each of them holds."""

from tff_het.clients.population import Client, Population

__all__ = ["Client", "Population"]
