"""Figure 5: accuracy of devices and ensemble for more and more epochs on an acquired batch."""

from collections.abc import Sequence

import experiments.study as s
from experiments.edge_ensembles import settings as edge
from experiments.edge_ensembles.settings import DEVICES, ENSEMBLE, EPOCHS, INITIAL

_FEW = (1, 15, 45)
_ROWS = edge.rows(map(edge.run_name, EPOCHS))
_SMALL = edge.rows(edge.run_name(e, small=True) for e in _FEW)
_WITH_INITIAL = {INITIAL: {ENSEMBLE: edge.INITIAL_ACCURACY}, **_ROWS, **_SMALL}
_LAST = _ROWS["E45F10"]
_REACHED = "three local models reach the highest accuracy they can, 20%, 20%, 30%"


def _rises(of: str) -> Sequence[s.Check]:
    along = {f"E = {e}": _ROWS[f"E{e}F10"][of] for e in EPOCHS}
    return s.rises("", along, by=f"accuracy of {of}").checks


EXPERIMENT = s.Experiment(
    "edge_ensembles.figure5",
    "Figure 5: local epochs",
    scales=edge.scales(
        lambda size: [
            s.Cell(INITIAL, size.start()),
            *(size.run(epochs=e) for e in EPOCHS),
            *(size.run(epochs=e, small=True, num_seeds=edge.FIRST_SEEDS) for e in _FEW),
        ],
        21,
    ),
    tables=[edge.table("Accuracy on the whole test set, Type I", _WITH_INITIAL)],
    printed=[
        s.Printed(INITIAL, ENSEMBLE, 15, "Note the initial accuracy is 15%", "§IV-B"),
        *s.printed("E45F10", DEVICES[:3], _REACHED, "§IV-B"),
    ],
    claims=[
        s.claim(
            "The initial accuracy is 15 % (to half a point, as printed).",
            {"0.5 points - distance": 0.005 - abs(edge.INITIAL_ACCURACY - 0.15)},
        ),
        s.Claim("The ensemble's accuracy almost monotonically increases with E.", _rises(ENSEMBLE)),
        s.Claim(
            "The local models' accuracy does so, too.", [k for d in DEVICES for k in _rises(d)]
        ),
        s.claim(
            "After enough training (E = 45) three local models reach the highest accuracy they "
            "can: 20, 20 and 30 % (to half a point, as printed).",
            {
                "D1 - 20 %": _LAST["D1"] - 0.2,
                "D2 - 20 %": _LAST["D2"] - 0.2,
                "D3 or D4 - 30 %": s.combined(max, _LAST["D3"], _LAST["D4"]) - 0.3,
            },
            above=-0.005,
        ),
    ],
    figures=[edge.bars(_ROWS, "all bars rise with E, and the ensemble ends above the devices.")],
)
