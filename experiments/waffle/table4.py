"""Table 4 of WAFFLe: local epochs, without sub-populations.

python -m experiments.waffle.table4 --scale=quick --data_dir=DIR --output_dir=out
"""

import sys

from experiments.study import program
from experiments.waffle import epochs
from experiments.waffle.settings import CIFAR, FED_AVG, FMNIST, MNIST, UNIMODAL, WAFFLE

EXPERIMENT = epochs.experiment(
    4,
    UNIMODAL,
    {
        (MNIST, FED_AVG): "FedAvg 92.95 93.36 93.55",
        (MNIST, WAFFLE): "WAFFLe 95.10 96.32 96.43",
        (FMNIST, FED_AVG): "FedAvg 85.32 85.13 85.14",
        (FMNIST, WAFFLE): "WAFFLe 87.52 87.07 89.25",
        (CIFAR, FED_AVG): "FedAvg 47.40 47.60 55.39",
        (CIFAR, WAFFLE): "WAFFLe 64.18 71.92 74.50",
    },
)


if __name__ == "__main__":
    sys.exit(program.main(EXPERIMENT, __doc__))
