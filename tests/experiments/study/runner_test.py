"""What is run, what is not run again, and what is said of what did not succeed."""

import dataclasses
import json

import pytest

from experiments import report
from experiments.study import claims, identity, rates, runner, store
from experiments.study.measures import metric
from experiments.study.store import Status


def test_a_run_that_two_cells_share_is_made_once(harness, make):
    runs = harness.run(make())
    assert len(runs) == harness.calls == 6  # Of 3 cells with 3 seeds each.
    assert all(run.status is Status.OK for run in runs)


def test_what_is_done_is_not_run_again(harness, make):
    harness.run(make())
    page = harness.page(make())
    harness.run(make())
    assert harness.calls == 6
    assert harness.page(make()) == page


def test_other_arguments_are_another_run(harness, make):
    harness.run(make())
    harness.run(make(second=0.4))
    assert harness.calls == 9


def test_other_code_is_another_run(harness, make, monkeypatch):
    harness.run(make())
    monkeypatch.setattr(identity, "code_of", lambda work: {"changed": "0"})
    harness.run(make())
    assert harness.calls == 12


def test_results_of_earlier_code_are_named(harness, make, monkeypatch):
    made = make()
    harness.run(made)
    assert report.stale([made], harness.folder).startswith("All results are of the code")
    monkeypatch.setattr(identity, "code_of", lambda work: {"changed": "0"})
    assert "9 ok, 9 of them of earlier code" in harness.page(made)
    said = report.stale([made], harness.folder)
    assert said.startswith("hdafl.made_up, smoke: 9 of 9 runs, since changed: changed, experiments")


def test_a_result_outlives_its_data(harness, make, monkeypatch):
    made = make(data_sets=("digits",))
    harness.run(made)

    def nowhere(name, data_dir):
        raise runner.MissingDataError("Gone.")

    monkeypatch.setattr(runner, "fingerprint", nowhere)
    assert all(run.status is Status.OK for run in harness.run(made))
    assert harness.calls == 6


def test_other_data_are_another_run(harness, make, monkeypatch):
    made = make(data_sets=("digits",))
    harness.run(made)
    monkeypatch.setattr(runner, "fingerprint", lambda name, data_dir: "changed")
    harness.run(made)
    assert harness.calls == 9


def test_what_failed_is_shown_and_tried_again(harness, make):
    harness.order(fail=0.5)
    harness.run(make())
    page = harness.page(make())
    assert "RuntimeError: out of luck &amp; &lt;money&gt;" in page
    assert "6 ok, 3 failed" in page and '<td class="verdict failed">failed</td>' in page
    assert ">undecided</strong>: a exceeds b" in page
    harness.order()
    harness.run(make())
    assert harness.calls == 3
    assert "9 ok." in harness.page(make())


def test_what_another_program_has_seen_fail_is_not_tried_again(harness, make):
    task = runner.plan(make(), "smoke", [0], harness.folder)[0]
    harness.order(fail=0.7)
    failed = runner.make(task, {}, data_dir=None)
    assert failed.status is Status.FAILED and harness.calls == 1
    assert runner.make(task, {}, data_dir=None) == failed and harness.calls == 1
    runner.make(task, {task.folder: failed.record}, data_dir=None)
    assert harness.calls == 2


def test_missing_data_are_named_and_the_others_run(harness, make):
    made = make(data_sets=("omniglot",))
    runs = harness.run(made, data_dir=str(harness.folder))
    assert [run.status for run in runs] == [Status.OK] * 3 + [Status.MISSING_DATA] * 3
    page = harness.page(made)
    assert "missing data" in page and "omniglot_small28.npz" in page


def test_numbers_that_are_not_finite_fail(harness, make):
    (run,) = {r.status for r in harness.run(make(second=float("inf"))) if r.error}
    assert run is Status.FAILED


def test_a_damaged_result_is_named(harness, make):
    harness.run(make())
    task = runner.plan(make(), "smoke", [0], harness.folder)[0]
    (task.folder / "result.json").write_text("{}")
    with pytest.raises(ValueError, match=r"result\.json is not a result"):
        store.read(task.folder)


def test_a_run_that_another_program_makes_stays_as_it_is(harness, make):
    task = runner.plan(make(), "smoke", [0], harness.folder)[0]
    done = runner.make(task, data_dir=None)
    record = (task.folder / "result.json").read_bytes()
    with claims.claimed(task.folder) as claim:
        assert claim is not None
        assert runner.make(task, data_dir=None) is None
    assert (task.folder / "result.json").read_bytes() == record
    assert runner.make(task, data_dir=None) == done and harness.calls == 1


def test_a_file_that_was_changed_since_is_named(harness, make):
    run = runner.make(runner.plan(make(), "smoke", [0], harness.folder)[0], data_dir=None)
    name = next(iter(run.record["files"]))
    assert run.file(name).read() == (run.files / name).read_bytes()
    (run.files / name).write_bytes(b"another")
    with pytest.raises(ValueError, match=f"{name} is not as its run left it"):
        store.read(run.folder).file(name)


def test_expected_time_is_what_another_seed_took(harness, make):
    first, second, *_ = runner.plan(make(), "smoke", range(2), harness.folder)
    assert rates.expected(first) is None
    run = runner.make(first, data_dir=None)
    assert rates.expected(second) == run.record["seconds"] < 1.0


def test_cells_that_do_not_fit_are_refused(make):
    made = make()
    scale = made.scales["smoke"]
    twice = dataclasses.replace(scale, cells=scale.cells * 2)
    with pytest.raises(ValueError, match="share names"):
        dataclasses.replace(made, scales={"smoke": twice})
    fewer = dataclasses.replace(scale, cells=scale.cells[:1])
    with pytest.raises(ValueError, match="no scale has the cells"):
        dataclasses.replace(made, scales={"smoke": fewer})
    elsewhere = dataclasses.replace(made.printed[0], row="C")
    with pytest.raises(ValueError, match="no place in a table"):
        dataclasses.replace(made, printed=(elsewhere,))


# --- Interruptions ----------------------------------------------------------------------------


@pytest.mark.parametrize("stop_at", [1, 2, 4, 6])
def test_interrupted_at_any_call_the_page_is_the_same(harness, new_harness, make, stop_at):
    harness.order(stop_at=stop_at)
    with pytest.raises(KeyboardInterrupt):
        harness.run(make())
    assert "not run" in harness.page(make()) or "unfinished" in harness.page(make())
    harness.run(make())
    whole = new_harness("whole")
    whole.run(make())
    assert harness.calls == whole.calls + 1
    assert harness.page(make()) == whole.page(make())
    for name in ("hdafl-made_up-smoke.csv", "hdafl-made_up-smoke.md"):
        files = [h.folder / "report" / name for h in (harness, whole)]
        assert files[0].read_bytes() == files[1].read_bytes()


@pytest.mark.parametrize("call", range(1, 14))
def test_interrupted_at_any_write_the_page_is_the_same(
    harness, new_harness, make, monkeypatch, call
):
    writes = 0
    write_json = store.records.write_json

    def stop(path, values):
        nonlocal writes
        writes += 1
        if writes == call:
            raise KeyboardInterrupt
        write_json(path, values)

    with monkeypatch.context() as patched:
        patched.setattr(store.records, "write_json", stop)
        with pytest.raises(KeyboardInterrupt):
            harness.run(make())
    harness.run(make())
    whole = new_harness("whole")
    whole.run(make())
    assert harness.page(make()) == whole.page(make())


def test_result_is_one_file_that_says_all(harness, make):
    run = harness.run(make())[0]
    record = json.loads((run.folder / "result.json").read_text())
    assert record["status"] == "ok" and record["key"] and record["seconds"] > 0
    assert set(record["metrics"]) == {"value"}
    assert "TensorFlow Federated" in record["versions"] and "cores" in record["hardware"]


def test_a_number_that_a_run_does_not_have_leaves_its_place_empty(harness, make):
    made = make()
    first, *others = made.tables[0].places
    places = (first._replace(measure=metric("a", "auc")), *others)
    table = dataclasses.replace(made.tables[0], places=places)
    made = dataclasses.replace(made, tables=(table,))
    harness.run(made)
    assert "not determined" in harness.page(made)


def test_a_claim_that_lacks_a_seeds_number_does_not_hold(harness, make):
    harness.order()
    made = make(second=0.1)
    harness.run(made)
    assert ">holds</strong>: a exceeds b" in harness.page(made)
    for path in harness.folder.rglob("result.json"):
        path.unlink()
    harness.order(no_number=1)
    harness.run(made)
    page = harness.page(made)
    assert ">undecided</strong>: a exceeds b" in page and "2 of 3 seeds" in page
