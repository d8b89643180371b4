"""The methods: one file each, which states its difference and nothing else.

All take a network, settings of the clients' training, and options of their own. Where a method says
nothing else, the initial weights follow from `seed`, `aggregator` is the mean weighted by examples,
and `server_optimizer` is any of `tff.learning.optimizers`, by default SGD at rate 1, which takes
the aggregate as it is.
"""

from tff_het.methods.registry import METHODS, build, names, options, trains_on_pooled_examples

__all__ = ["METHODS", "build", "names", "options", "trains_on_pooled_examples"]
