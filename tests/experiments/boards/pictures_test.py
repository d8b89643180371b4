"""Pictures of boards, on numbers worked out by hand."""

import numpy as np
import pytest

import experiments.study as s
from experiments.boards import pictures
from experiments.study.store import Results, Run, Status

# Setting -> method -> accuracy by seed.
FOUND = {
    "one": {"a": (0.9, 0.8, 0.85), "b": (0.5, 0.4, 0.45), "c": (0.6, 0.3, 0.9)},
    "two": {"a": (0.7, 0.72, 0.71), "b": (0.71, 0.70, 0.72), "c": (0.1, 0.2, 0.1)},
}
BOARD = {x: {m: s.metric(f"{x}/{m}", "accuracy") for m in of} for x, of in FOUND.items()}
SENT = {x: {m: s.metric(f"{x}/{m}", "bytes") for m in of} for x, of in FOUND.items()}


def results(*settings: str, found=FOUND) -> Results:
    runs = {
        (f"{x}/{m}", seed): Run(None, Status.OK, {"metrics": {"accuracy": value, "bytes": 1e6}})
        for x in settings
        for m, of in found[x].items()
        for seed, value in enumerate(of)
    }
    return Results("paper", [0, 1, 2], runs)


def test_ranks_and_wins():
    of = pictures.values(BOARD, results("one", "two"))
    # c is second in one and last in two; a and b have equal means in two.
    np.testing.assert_allclose(pictures.mean_ranks(of), [1.25, 2.25, 2.5])
    # In two, a and b are above c: p is .003 and .005, and twice that corrected. In one, a's lead
    # over b does not vary, which has no test, and the others vary too much.
    np.testing.assert_array_equal(pictures.wins(of), [[0, 0, 1], [0, 0, 1], [0, 0, 0]])
    # The mean over both is .78, .58 and .366667.
    gaps = pictures.mean_gaps(of)
    np.testing.assert_allclose(gaps[0], [0, 0.2, 0.78 - 0.366667], atol=1e-6)
    np.testing.assert_array_equal(gaps, -gaps.T)


def test_a_run_that_diverged_counts_as_0_and_against_nobody():
    found = {"two": {**FOUND["two"], "a": (0.9, 0.92, float("nan"))}}
    of = pictures.values({"two": BOARD["two"]}, results("two", found=found))
    np.testing.assert_array_equal(pictures.mean_ranks(of), [2, 1, 3])
    assert pictures.wins(of)[2].sum() == 0


def test_critical_differences_are_those_of_demsar():
    """Table 5 (a): q of 2, 4 and 10 methods is 1.960, 2.569 and 3.164."""
    for count, q in ((2, 1.960), (4, 2.569), (10, 3.164)):
        wanted = q * np.sqrt(count * (count + 1) / (6 * 14))
        assert pictures.critical_difference(count, 14) == pytest.approx(wanted, abs=2e-3)


def test_settings_that_lack_a_run_are_left_out():
    whole = results("one", "two")
    del whole.runs["two/c", 1]
    assert pictures.values(BOARD, whole).settings == ["one"]
    assert pictures.values(BOARD, results()) is None
    assert pictures.values({}, whole) is None


def test_pictures_name_all_methods():
    whole = results("one", "two")
    for figure in (
        pictures.ranks("Ranks", BOARD),
        pictures.against_bytes("Bytes", BOARD, SENT),
        pictures.above("Above", BOARD),
    ):
        drawing = figure.draw(whole)
        texts = {text.get_text() for text in drawing.findobj(lambda one: hasattr(one, "get_text"))}
        assert {"a", "b", "c"} <= {text.split()[-1] for text in texts if text.strip()}
        assert figure.draw(results()) is None
