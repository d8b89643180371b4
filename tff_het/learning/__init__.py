"""Client works, aggregators, server steps and their composition: all that builds a computation."""
