"""The methods: one file each, which states its difference and nothing else."""

from tff_het.methods.registry import METHODS, build, names, options, trains_on_pooled_examples

__all__ = ["METHODS", "build", "names", "options", "trains_on_pooled_examples"]
