"""Table 5 of WAFFLe: local epochs, with sub-populations.

python -m experiments.waffle.table5 --scale=quick --data_dir=DIR --output_dir=out
"""

import sys

from experiments.study import program
from experiments.waffle import epochs
from experiments.waffle.settings import CIFAR, FED_AVG, FMNIST, MNIST, MULTIMODAL, WAFFLE

EXPERIMENT = epochs.experiment(
    5,
    MULTIMODAL,
    {
        (MNIST, FED_AVG): "FedAvg 88.70 89.27 89.03",
        (MNIST, WAFFLE): "WAFFLe 95.37 94.87 95.07",
        (FMNIST, FED_AVG): "FedAvg 86.21 86.58 86.47",
        (FMNIST, WAFFLE): "WAFFLe 87.03 89.15 91.33",
        (CIFAR, FED_AVG): "FedAvg 40.91 42.09 42.00",
        (CIFAR, WAFFLE): "WAFFLe 58.79 57.00 62.61",
    },
)


if __name__ == "__main__":
    sys.exit(program.main(EXPERIMENT, __doc__))
