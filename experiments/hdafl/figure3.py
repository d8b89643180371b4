"""Figure 3 of HDAFL: test accuracy over the rounds, in the non-i.i.d and the disjoint setting."""

import itertools
from collections.abc import Iterator

import experiments.study as s
from experiments.hdafl import settings
from experiments.hdafl.settings import ACCURACY, DISJOINT, METHODS, NON_IID, SELECTED, TITLES, run

_SHOWN = (NON_IID, DISJOINT)


def _claims(data: str) -> Iterator[s.Claim]:
    numbers = SELECTED[NON_IID]
    of = {(m, c): s.roughness(run(data, NON_IID, c, m), ACCURACY) for m in METHODS for c in numbers}
    more = {
        f"roughness of {m}, C = {a} - C = {b}": of[m, a] - of[m, b]
        for m in METHODS
        for a, b in itertools.pairwise(numbers)
    }
    yield s.claim(f"non-i.i.d ({data}): curves are smoother when more clients participate.", more)
    fewer = {
        f"roughness of FedAvg, C = {b} - HDAFL, C = {a}": of["FedAvg", b] - of["HDAFL", a]
        for a, b in itertools.combinations(numbers, 2)
    }
    text = f"non-i.i.d ({data}): HDAFL attains the smoothness of more clients with fewer."
    yield s.claim(text, fewer)


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
            share_y="row",
        )
    ],
)
