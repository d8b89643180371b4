"""Partitions: functions from arrays and a seed to each client's example indices.

`make('shards', train, test, num_clients=100, seed=0, shards_per_client=2)` gives a `Partition`;
`names()` lists them. `make_with_local_test` cuts each client's test from its own share,
`set_apart` keeps examples for the server.
"""

from tff_het.partitions.assignment import Assignment
from tff_het.partitions.local_test import make_with_local_test
from tff_het.partitions.partition import Partition
from tff_het.partitions.registry import PARTITIONS, make, names
from tff_het.partitions.server import set_apart

__all__ = [
    "PARTITIONS",
    "Assignment",
    "Partition",
    "make",
    "make_with_local_test",
    "names",
    "set_apart",
]
