"""Table 3 of HDAFL: accuracy of HDAFL and FedAvg in three settings, with C clients selected."""

import itertools
from collections.abc import Iterable, Iterator, Mapping

import experiments.study as s
from experiments.hdafl import settings
from experiments.hdafl.settings import CLAIMED, COLUMNS, DISJOINT, IID, METHODS, NON_IID, SELECTED

# As the paper's text has them.
_ROWS = {
    f"{IID}, HDAFL": "i.i.d HDAFL 74.90 75.37 75.89",
    f"{IID}, FedAvg": "FedAvg 78.26 79.00 79.03",
    f"{NON_IID}, HDAFL": "non-i.i.d HDAFL 79.61 79.97 80.47",
    f"{NON_IID}, FedAvg": "FedAvg 78.00 78.88 79.06",
    f"{DISJOINT}, HDAFL": "Disjoint HDAFL 97.53 97.80 97.78",
    f"{DISJOINT}, FedAvg": "FedAvg 17.44 18.99 19.51",
}

_UNTIL = {"rounds": s.rounds_until, "bytes": s.bytes_until}


def accuracy(data: str, setting: str, selected: int, method: str) -> s.Measure:
    """After the last round."""
    return s.metric(settings.run(data, setting, selected, method), settings.ACCURACY)


def claims(data: str, among: Iterable[str] = SELECTED) -> Iterator[s.Claim]:
    """What section 5.1 and the conclusion say of some settings, the most balanced one first."""
    leads: dict[str, dict[str, s.Measure]] = {}
    for setting in among:
        one, other = ("FedAvg", "HDAFL") if setting == IID else METHODS
        of = {
            f"{setting}, C = {c}": accuracy(data, setting, c, one)
            - accuracy(data, setting, c, other)
            for c in SELECTED[setting]
        }
        checks = {f"{one} - {other}, {name}": gap for name, gap in of.items()}
        yield s.claim(f"{setting} ({data}): {one} is better than {other}.", checks)
        leads[setting] = {k: 0.0 - gap for k, gap in of.items()} if setting == IID else of
    slight = {f"HDAFL - FedAvg, {name}": lead for name, lead in leads[IID].items()}
    text = f"{IID} ({data}): HDAFL's penalty is slight: 3.63 points, the largest printed, at most."
    yield s.claim(text, slight, -0.0363)
    text = f"HDAFL's gain grows with imbalance ({data}): {', '.join(leads)}."
    yield _growing(text, "gain of HDAFL", leads)


def _growing(text: str, of: str, gains: Mapping[str, s.Measures], form=s.PERCENT) -> s.Claim:
    """Gains by setting, the most balanced one first, and in each by C."""
    checks = {
        f"{of}, {b} - {a}": y[b] - x[a]
        for x, y in itertools.pairwise(gains.values())
        for a, b in zip(x, y, strict=True)
    }
    return s.claim(text, checks, form=form)


def _sooner(data: str) -> s.Claim:
    """What the introduction says of rounds and bytes: until a setting's common accuracy."""
    ratios: dict[str, dict[str, s.Measure]] = {}
    for setting, among in SELECTED.items():
        pairs = {c: [settings.run(data, setting, c, m) for m in METHODS] for c in among}
        every = (s.metric(cell, settings.ACCURACY) for pair in pairs.values() for cell in pair)
        goal, ratios[setting] = s.combined(min, *every), {}
        for c, by in itertools.product(among, _UNTIL):
            hdafl, fed_avg = (s.until(x, settings.ACCURACY, goal, _UNTIL[by]) for x in pairs[c])
            ratios[setting][f"{setting}, C = {c}, {by}"] = fed_avg / hdafl
    text = f"HDAFL's gain in rounds and in bytes grows with imbalance ({data}): "
    return _growing(f"{text}{', '.join(ratios)}.", "FedAvg / HDAFL", ratios, s.Form())


EXPERIMENT = s.Experiment(
    "hdafl.table3",
    "Table 3: accuracy in % after the last round",
    scales=settings.scales(),
    tables=[
        s.Table(title, settings.places(data, s.metric), compare=data in CLAIMED)
        for data, title in settings.TITLES.items()
    ],
    printed=s.printed(_ROWS, [*COLUMNS], "Table 3, row {row}"),
    claims=[claim for data in CLAIMED for claim in (*claims(data), _sooner(data))],
)
