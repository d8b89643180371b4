"""Examples in memory-mapped files: reading one client's, and nobody else's."""

import mmap
from collections.abc import Mapping
from typing import Any

import numpy as np


def fetch(examples: Mapping[str, np.ndarray]) -> None:
    """Has the system read what is mapped of a client's columns, before they are used.

    Otherwise the first access to a page also reads its neighbours, up to the disk's
    `read_ahead_kb`: 128 KB as a rule, 8 MB on some machines. That is good for reading a file from
    start to end. For clients drawn from a large file it reads far more than they hold, so that
    rounds would take longer the more clients there are.

    Args:
      examples: C-contiguous columns. Those that are not mapped are left alone.
    """
    for column in examples.values():
        mapping = _mapping(column)
        if mapping is None or not column.nbytes:
            continue
        begin = column.ctypes.data - np.frombuffer(mapping, np.uint8).ctypes.data
        page = begin - begin % mmap.PAGESIZE  # Advice is for whole pages.
        mapping.madvise(mmap.MADV_WILLNEED, page, begin - page + column.nbytes)


def _mapping(array: np.ndarray) -> mmap.mmap | None:
    """Returns what a view of a `np.memmap` shows a part of."""
    base: Any = array
    while isinstance(base, np.ndarray):
        base = base.base
    return base if isinstance(base, mmap.mmap) else None
