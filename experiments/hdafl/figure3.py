"""Figure 3 of HDAFL: test accuracy over the rounds, in the non-i.i.d and the disjoint setting."""

import itertools
from collections.abc import Iterator

import experiments.study as s
from experiments.hdafl import settings
from experiments.hdafl.settings import ACCURACY, DISJOINT, METHODS, NON_IID, SELECTED, TITLES, run

_SHOWN = (NON_IID, DISJOINT)


def _claims(data: str) -> Iterator[s.Claim]:
    few = {m: s.roughness(run(data, NON_IID, 10, m), ACCURACY) for m in METHODS}
    many = {m: s.roughness(run(data, NON_IID, 50, m), ACCURACY) for m in METHODS}
    text = f"non-i.i.d ({data}): curves are smoother when more clients participate."
    yield s.claim(text, {f"roughness of {m}, C = 10 - C = 50": few[m] - many[m] for m in METHODS})
    text = f"non-i.i.d ({data}): with few clients, HDAFL's curve is smoother than FedAvg's."
    yield s.claim(text, {"roughness of FedAvg - HDAFL, C = 10": few["FedAvg"] - few["HDAFL"]})


EXPERIMENT = s.Experiment(
    "hdafl.figure3",
    "Figure 3: test accuracy over the rounds",
    scales=settings.scales(_SHOWN),
    tables=[
        s.Table(f"Roughness in points, {title}", settings.places(data, s.roughness, _SHOWN))
        for data, title in (TITLES | {settings.STAND_IN: "stand-in for FEMNIST"}).items()
    ],
    claims=[claim for data in settings.CLAIMED for claim in _claims(data)],
    figures=[
        s.curves(
            "Clients' average test accuracy over the rounds",
            "400 rounds of FEMNIST, non-i.i.d (a, b) and disjoint (c, d). The text on "
            "non-i.i.d: HDAFL converges faster than FedAvg and to a higher accuracy; curves are "
            "smoother when more clients participate, and HDAFL's are so with fewer clients.",
            {
                f"{data}, {setting}, {m}": {
                    f"C = {c}": (run(data, setting, c, m), ACCURACY) for c in SELECTED[setting]
                }
                for data, setting, m in itertools.product(TITLES, _SHOWN, METHODS)
            },
            columns=len(METHODS),
            share_y=True,
        )
    ],
)
