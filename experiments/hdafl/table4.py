"""Table 4 of HDAFL: rounds and megabytes until HDAFL and FedAvg reach a common accuracy."""

from collections.abc import Iterator, Mapping

import experiments.study as s
from experiments.hdafl.settings import ACCURACY, CLAIMED, METHODS, NON_IID, TITLES, run, scales

_TARGET, _ROUNDS, _MEGABYTES = "Accuracy (%)", "Rounds number", "Communication Cost (MB)"
_COUNT, _MB = s.Form(digits=1), s.Form(digits=1, factor=1e-6)
_SELECTED = (10, 20, 50)
# As the paper's text has them: C, rounds, megabytes.
_ROWS = {
    "HDAFL": ("10 HDAFL 139 86.8", "20 HDAFL 110 137.5", "50 HDAFL 83 259.3"),
    "FedAvg": ("10 FedAvg 259 171.7", "20 FedAvg 157 208.2", "50 FedAvg 115 381.2"),
}
_NOTES = {
    "HDAFL": "62.5 KB a client and round, or 7,800 parameters both ways: not LEAF's network.",
    "FedAvg": "66.3 KB a client and round, or 8,300 parameters both ways: not LEAF's network.",
}


def _target(data: str) -> s.Measure:
    """The lowest accuracy after the last round of a seed's runs, so that all of them reach it."""
    runs = [run(data, NON_IID, selected, m) for m in METHODS for selected in _SELECTED]
    return s.combined(min, *(s.metric(cell, ACCURACY) for cell in runs))


def _until(data: str, selected: int, method: str, column: str) -> s.Measure:
    """Rounds or bytes until the first measured round with the target."""
    cell, target = run(data, NON_IID, selected, method), _target(data)

    def compute(runs: Mapping[str, s.Run]) -> float:
        accuracy = target.compute(runs)
        assert accuracy is not None
        reached = s.first_round(runs[cell], ACCURACY, accuracy)
        assert reached is not None  # The summary's last accuracy stands in the last row as well.
        return reached if column == _ROUNDS else s.bytes_until(runs[cell], reached)

    return s.Measure(target.cells, compute)


def _table(data: str) -> s.Table:
    def times(c: int, column: str) -> s.Measure:
        return _until(data, c, "FedAvg", column) / _until(data, c, "HDAFL", column)

    rows = {f"C = {c}, {method}": (c, method) for method in METHODS for c in _SELECTED}
    ratios = {f"C = {c}, FedAvg / HDAFL": c for c in _SELECTED}
    columns = {_ROUNDS: (_ROUNDS, _COUNT), _MEGABYTES: (_MEGABYTES, _MB)}
    places = (
        s.Place("Target", _TARGET, _target(data)),
        *s.places(rows, columns, lambda row, column: _until(data, row[0], row[1], column)),
        *s.places(ratios, list(columns), times, s.Form(digits=2)),
    )
    return s.Table(TITLES[data], places, compare=data in CLAIMED)


def _claim(data: str) -> s.Claim:
    sent = {m: {c: _until(data, c, m, _MEGABYTES) for c in _SELECTED} for m in METHODS}
    text = f"non-i.i.d ({data}): HDAFL reaches the target with fewer bytes than FedAvg."
    fewer = {c: sent["FedAvg"][c] - sent["HDAFL"][c] for c in _SELECTED}
    return s.claim(text, {f"MB of FedAvg - HDAFL, C = {c}": fewer[c] for c in fewer}, form=_MB)


def _printed() -> Iterator[s.Printed]:
    title = "Communication cost to attain 78% accuracy (non-i.i.d)"
    yield s.Printed("Target", _TARGET, 78, title, "Table 4, title")
    for method, quotes in _ROWS.items():
        for quote in quotes:
            c, _, rounds, megabytes = quote.split()
            row, place = f"C = {c}, {method}", f"Table 4, row {c} {method}"
            yield s.Printed(row, _ROUNDS, int(rounds), quote, place)
            yield s.Printed(row, _MEGABYTES, float(megabytes), quote, place, note=_NOTES[method])
    row, place = "C = 50, FedAvg / HDAFL", "Section 5.1, Communication complexity"
    faster = "83 rounds, which is 1.3\N{MULTIPLICATION SIGN} faster than FedAvg"
    note = "The table's 115 and 83 rounds give 1.39, which is 1.4."
    yield s.Printed(row, _ROUNDS, 1.3, faster, place, note=note)
    smaller = "requires a 1.5\N{MULTIPLICATION SIGN} smaller volume of exchanges"
    yield s.Printed(row, _MEGABYTES, 1.5, smaller, place)


EXPERIMENT = s.Experiment(
    "hdafl.table4",
    "Table 4: communication until a common accuracy in non-i.i.d",
    scales=scales((NON_IID,)),
    tables=[_table(data) for data in TITLES],
    printed=list(_printed()),
    claims=[_claim(data) for data in CLAIMED],
)

if __name__ == "__main__":
    s.main(EXPERIMENT, __doc__)
