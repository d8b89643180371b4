"""Table 7 of WAFFLe: alpha and the number of factors, with sub-populations.

python -m experiments.waffle.table7 --scale=quick --data_dir=DIR --output_dir=out
"""

import sys

from experiments.study import program
from experiments.waffle import factors
from experiments.waffle.settings import MULTIMODAL

EXPERIMENT = factors.experiment(
    7,
    MULTIMODAL,
    {
        "0.4": "91.83 92.70 93.23",
        "0.6": "94.23 94.48 95.26",
        "0.8": "94.76 95.15 95.70",
        "1.0": "94.70 94.93 95.93",
    },
)


if __name__ == "__main__":
    sys.exit(program.main(EXPERIMENT, __doc__))
