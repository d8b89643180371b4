"""The methods: one file each, which states its difference and nothing else."""

from tff_het.methods.registry import METHODS, build, names, options

__all__ = ["METHODS", "build", "names", "options"]
