"""Table 1 of CGAU: how different simulated clients are, over the share of shuffling."""

from itertools import pairwise
from typing import Any

import experiments.study as s
from experiments.cgau.settings import COLUMNS, PAPER_NOTE, SHUFFLED
from tff_het import datasets, partitions
from tff_het.clients import Population
from tff_het.evaluation import heterogeneity


def distances(
    *, seed: int, data_dir: str | None, dataset: str, num_clients: int, **more: Any
) -> dict[str, float]:
    """Partitions a data set at each level of shuffling, and measures how clients differ.

    Gives Gamma (eq. 3) and the mean earth mover's distance, train and test points together. With
    a `positive_label` the classes are that one and the rest.
    """
    data = datasets.load(dataset, data_dir)
    if "positive_label" in more:
        data = data.one_against_rest(more["positive_label"])
    options: dict[str, Any] = {"num_clients": num_clients, "allow_empty_test": True, "seed": seed}
    found: dict[str, float] = {}
    for level in SHUFFLED:
        options["shuffle_fraction"] = float(level)
        partition = partitions.make("clusters", data.train, data.test, **options)
        population = Population.from_partition(data, partition)
        gamma, emd = heterogeneity.of_population(population, data.num_classes)
        found |= {f"gamma_{level}": float(gamma.mean()), f"emd_{level}": float(emd.mean())}
    return found


def _of(name: str, level: str) -> s.Measure:
    return s.metric("distances", f"{name}_{level}")


_GAMMA = "Average client Fréchet distance"
_EMD = "Average earth mover's distance of classes"
_CLASSES = "Distance between class proportions alone (0 to 2)"
_QUOTE = f"{_GAMMA} 1784.4 980.0 550.5 271.0 91.8 19.9"
_FORM = s.Form(digits=1)
_FALL = {f"Γ at {a} - at {b}": _of("gamma", a) - _of("gamma", b) for a, b in pairwise(SHUFFLED)}
_ZEROS: dict[str, Any] = {"dataset": "digits", "num_clients": 3, "positive_label": "0"}
_SMOKE = s.call("distances", distances, "digits", **_ZEROS)
_COUGH = s.call("distances", distances, "fsd_cough", dataset="fsd_cough", num_clients=10)

EXPERIMENT = s.Experiment(
    "cgau.table1",
    "Table 1: mean squared Fréchet distance of clients (Γ) over the proportion of shuffled points",
    scales={
        "smoke": s.Scale([_SMOKE], 1, "Only to see that it runs: zeros among digits, 3 clients."),
        "quick": s.Scale([_COUGH], 50, "Stand-in data; 50 seeds instead of 12."),
        "paper": s.Scale([_COUGH], 12, PAPER_NOTE),
    },
    tables=[
        s.table("Γ", {_GAMMA: "gamma"}, COLUMNS, _of, _FORM),
        s.table(_CLASSES, {_EMD: "emd"}, COLUMNS, _of, s.Form(digits=3), compare=False),
    ],
    printed=s.printed({_GAMMA: _QUOTE}, [*COLUMNS], "Table 1"),
    claims=[s.claim("Γ falls as shuffling rises, from each level to the next.", _FALL, form=_FORM)],
)
