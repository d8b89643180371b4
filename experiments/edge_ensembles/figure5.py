"""Figure 5: accuracy of devices and ensemble for more and more epochs on an acquired batch."""

from collections.abc import Sequence

import experiments.study as s
from experiments.edge_ensembles import settings as edge

_FEW = (1, 15, 45)
_ROWS = {run: edge.accuracies(run) for run in map(edge.run_name, edge.EPOCHS)}
_SMALL = {r: edge.accuracies(r) for r in (edge.run_name(e, small=True) for e in _FEW)}
_WITH_INITIAL = {edge.INITIAL: {edge.ENSEMBLE: edge.INITIAL_ACCURACY}, **_ROWS, **_SMALL}
_INITIAL = {"0.5 points - distance": 0.005 - abs(edge.INITIAL_ACCURACY - 0.15)}
_ENSEMBLE = "The ensemble's accuracy almost monotonically increases with E."
_LOCAL = "The local models' accuracy almost monotonically increases with E."
_REACHED = "three local models reach the highest accuracy they can, 20%, 20%, 30%"


def _rises(of: str) -> Sequence[s.Check]:
    along = {f"E = {e}": _ROWS[f"E{e}F10"][of] for e in edge.EPOCHS}
    return s.rises("", along, by=f"accuracy of {of}").checks


EXPERIMENT = s.Experiment(
    "edge_ensembles.figure5",
    "Figure 5: local epochs",
    scales=edge.scales(
        lambda size: [
            s.Cell(edge.INITIAL, size.start()),
            *(size.run(epochs=e) for e in edge.EPOCHS),
            *(size.run(epochs=e, small=True, num_seeds=edge.FIRST_SEEDS) for e in _FEW),
        ],
        21,
    ),
    tables=[edge.table("Accuracy on the whole test set, Type I", _WITH_INITIAL)],
    printed=[
        s.Printed(edge.INITIAL, edge.ENSEMBLE, 15, "Note the initial accuracy is 15%", "§IV-B"),
        *s.printed({"E45F10": _REACHED}, edge.DEVICES[:3], "§IV-B"),
    ],
    claims=[
        s.claim("The initial accuracy is 15 %.", _INITIAL),
        s.Claim(_ENSEMBLE, _rises(edge.ENSEMBLE)),
        s.Claim(_LOCAL, [k for d in edge.DEVICES for k in _rises(d)]),
        s.claim(
            "After enough training three local models reach the highest they can: 20, 20, 30 %.",
            {
                f"0.5 points - distance of {device} from {points} %": 0.005
                - abs(_ROWS["E45F10"][device] - points / 100)
                for device, points in zip(edge.DEVICES, (20, 20, 30), strict=False)
            },
        ),
    ],
    figures=[edge.bars(_ROWS, "almost all bars rise with E (so the text).")],
)
