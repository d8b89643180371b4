"""Table 3 of HDAFL on the stand-in, non-i.i.d., with as many rounds as in the paper and C = 20."""

import dataclasses

import experiments.study as s
from experiments.hdafl import settings, table3
from experiments.hdafl.settings import NON_IID, STAND_IN

_PAPER = settings.scales((NON_IID,))["paper"].cells
_CELLS = [cell for cell in _PAPER if cell.name.startswith(STAND_IN) and "/C=20/" in cell.name]
_QUICK = s.Scale(_CELLS, 1, "400 rounds of one epoch, 50 clients, 1 seed.")

EXPERIMENT = dataclasses.replace(
    table3.EXPERIMENT,
    id="hdafl.full_length",
    title="Table 3: the stand-in at full length",
    scales={**table3.EXPERIMENT.scales, "quick": _QUICK},
    tables=[one for one in table3.EXPERIMENT.tables if one.title == settings.TITLES[STAND_IN]],
    claims=(),
)
