"""Computations as the building blocks that a runtime and the communication ledger read."""

from typing import Any

from tff_het import kept
from tff_het.backend.names import tff


@kept.by_content(size=4)
def call_dominant(computation: tff.Computation) -> Any:
    """Returns a computation as a building block without dead code.

    Intrinsics are written out and calls inlined: the first steps of TFF's own compiler.
    """
    block, _ = tff.tensorflow.replace_intrinsics_with_bodies(computation.to_building_block())
    return tff.framework.to_call_dominant(block)
