"""Section IV-B: one model that is trained on one device after another forgets what it learnt."""

import experiments.study as s
from experiments.edge_ensembles import settings as edge

_SEQUENTIAL, _ENSEMBLE = "Sequential training", "AveFL, E45F10"
_QUOTE = "capable of classifying the class corresponding to the last subset (around 28%)"
_IN_TURN: dict = {"observe": None, "sampling": "in_turn", "clients_per_round": 1, "rounds": 4}
_CASES: dict[str, dict] = {
    _SEQUENTIAL: {},
    f"{_SEQUENTIAL}, {edge.SMALL}": {"small": True},
    f"{_SEQUENTIAL}, without momentum": {"client_momentum": 0},
    **{f"{_SEQUENTIAL}, rate {x}": {"client_learning_rate": x} for x in (0.001, 0.003)},
}
_FORGETS = "After the last subset the model is right on around 28 %: within 2 points."
_ACCURACY = edge.TRAINED_ACCURACY
_RESULT = s.metric(_SEQUENTIAL, _ACCURACY)
_OURS = "Ours: an ensemble of the devices does better than sequential training."
_ROWS = {c: {f"After D{n}": s.in_round(c, _ACCURACY, n) for n in range(1, 5)} for c in _CASES}
_ROWS[_ENSEMBLE] = {"After D4": edge.ensemble(_ENSEMBLE)}
EXPERIMENT = s.Experiment(
    "edge_ensembles.sequential",
    "Section IV-B: sequential training forgets",
    scales=edge.scales(
        lambda size: [
            *(size.run(name, frequency=1, **_IN_TURN, **case) for name, case in _CASES.items()),
            size.run(_ENSEMBLE),
        ]
    ),
    tables=[edge.table("Accuracy on the whole test set", _ROWS)],
    printed=[s.Printed(_SEQUENTIAL, "After D4", 28, _QUOTE, "§IV-B")],
    claims=[
        s.claim(_FORGETS, {"2 points - distance": 0.02 - abs(_RESULT - 0.28)}),
        s.claim(_OURS, {"AveFL - sequential training": edge.ensemble(_ENSEMBLE) - _RESULT}),
    ],
)
