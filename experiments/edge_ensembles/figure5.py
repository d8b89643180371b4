"""Figure 5: accuracy of devices and ensemble for more and more epochs on an acquired batch."""

import experiments.study as s
from experiments.edge_ensembles import settings as edge
from experiments.edge_ensembles.settings import DEVICES, ENSEMBLE, EPOCHS, INITIAL

_FEW = (1, 15, 45)
_ROWS = edge.rows(map(edge.run_name, EPOCHS))
_SMALL = edge.rows(edge.run_name(e, small=True) for e in _FEW)
_WITH_INITIAL = {INITIAL: {ENSEMBLE: edge.INITIAL_ACCURACY}, **_ROWS, **_SMALL}
_REACHED = "three local models reach the highest accuracy they can, 20%, 20%, 30%"


def _rises(text: str, of: str, *along: int) -> s.Claim:
    return s.rises(text, {f"E = {epochs}": _ROWS[f"E{epochs}F10"][of] for epochs in along})


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
        *(
            s.Printed("E45F10", device, 100 * edge.SHARES[device], _REACHED, "§IV-B")
            for device in ("D1", "D2", "D3")
        ),
    ],
    claims=[
        s.claim(
            "The initial training stops near 15 %.",
            {"5 points - distance": 0.05 - abs(edge.INITIAL_ACCURACY - 0.15)},
        ),
        _rises("The ensemble's accuracy rises with the number of epochs.", ENSEMBLE, *_FEW),
        *(
            _rises(f"The local model's ({d}) accuracy rises with the number of epochs.", d, *_FEW)
            for d in DEVICES
        ),
        _rises("The ensemble's accuracy almost monotonically increases with E.", ENSEMBLE, *EPOCHS),
    ],
    figures=[edge.bars(_ROWS, "all bars rise with E, and the ensemble ends above the devices.")],
)
