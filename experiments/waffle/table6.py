"""Table 6 of WAFFLe: alpha and the number of factors, without sub-populations.

python -m experiments.waffle.table6 --scale=quick --data_dir=DIR --output_dir=out
"""

import sys

from experiments.study import program
from experiments.waffle import factors
from experiments.waffle.settings import UNIMODAL

EXPERIMENT = factors.experiment(
    6,
    UNIMODAL,
    {
        "0.4": "93.20 94.07 94.42",
        "0.6": "95.08 94.48 95.56",
        "0.8": "95.56 95.15 96.08",
        "1.0": "96.33 95.63 96.45",
    },
)


if __name__ == "__main__":
    sys.exit(program.main(EXPERIMENT, __doc__))
