"""What the examples are: named data sets as arrays.

`load('mnist', data_dir)` gives a `Dataset`: train and test examples as columns of arrays, whatever
the files they came from. `names()` lists them.
"""

from tff_het.datasets.dataset import Dataset, Examples
from tff_het.datasets.registry import DATASETS, load, names

__all__ = ["DATASETS", "Dataset", "Examples", "load", "names"]
