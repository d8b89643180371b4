"""Table 7 of WAFFLe: alpha and the number of factors, with sub-populations."""

from experiments.waffle import table6

EXPERIMENT = table6.experiment(
    7,
    "multimodal",
    ["91.83 92.70 93.23", "94.23 94.48 95.26", "94.76 95.15 95.70", "94.70 94.93 95.93"],
)
