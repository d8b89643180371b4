"""Figure 9: active learning and random choice, with an ensemble and without."""

import experiments.study as s
from experiments.edge_ensembles import settings as edge

_ALONE = {function: f"{function}, without ensembling" for function in (edge.RANDOM, edge.ENTROPY)}
_TABLE = "Accuracy on the whole test set, Type II; devices without ensembling"
_BETTER = "Active learning performs better than random choice, from the second bar to the last."
_RANDOM, _ACTIVE = "Random choice", "Active learning (max entropy)"


def _models(function: str) -> dict[str, s.Measure]:
    ensemble = s.metric(function, edge.TRAINED_ACCURACY)
    return {edge.ENSEMBLE: ensemble, **edge.accuracies(_ALONE[function], edge.DEVICES)}


_MODELS = {_RANDOM: _models(edge.RANDOM), _ACTIVE: _models(edge.ENTROPY)}
_ROWS = {row: {edge.INITIAL: edge.INITIAL_ACCURACY} | of for row, of in _MODELS.items()}
EXPERIMENT = s.Experiment(
    "edge_ensembles.figure9",
    "Figure 9: active learning with an ensemble and without",
    scales=edge.scales(
        lambda size: [
            s.Cell(edge.INITIAL, size.start(edge.TYPE_2)),
            *(size.run(f, active=f, observe=None) for f in _ALONE),
            *(size.run(name, active=f, frequency=1) for f, name in _ALONE.items()),
        ],
        20,
    ),
    tables=[edge.table(_TABLE, _ROWS)],
    claims=[
        s.claim(
            "Random or active, the ensemble is more accurate than devices without ensembling.",
            {
                f"accuracy of the ensemble - {d}, {row.lower()}": of[edge.ENSEMBLE] - of[d]
                for row, of in _MODELS.items()
                for d in edge.DEVICES
            },
        ),
        s.claim(_BETTER, edge.minus("active - random", _MODELS[_ACTIVE], _MODELS[_RANDOM])),
    ],
    figures=[
        s.bars(
            "Initial accuracy, ensemble, and four devices without ensembling",
            "the ensemble is above the four devices, active learning above random choice.",
            {"": _ROWS},
            xlabel="model",
            ylabel="test accuracy (%)",
        )
    ],
)
