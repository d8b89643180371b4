"""The training loop: who is evaluated when, what a run leaves, and what stopping changes."""

import csv
import dataclasses
import math
import os
import signal

import numpy as np
import pytest
import tensorflow as tf
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from tff_het import seeding
from tff_het.clients import Population
from tff_het.evaluation import communication
from tff_het.evaluation.local_test import global_test, local_tests
from tff_het.simulation import cohorts, loop
from tff_het.simulation.checkpoints import CheckpointError, Checkpoints, path_in
from tff_het.simulation.loop import DivergedError, Goal, Settings

pytestmark = pytest.mark.usefixtures("each_runtime")

NUM_CLIENTS, SEED = 5, 3
UNIFORM = cohorts.uniform(NUM_CLIENTS, 2, SEED)
CONFIG = {"seed": SEED}


@pytest.fixture(scope="module")
def population(make_population) -> Population:
    return make_population(NUM_CLIENTS)


@pytest.fixture
def train(make_process, population):
    def run(folder=None, *, method="hdafl", schedule=UNIFORM, clients=population, **options):
        names = ("test_examples", "on_round", "on_evaluation", "config", "evaluated", "ledger")
        arguments = {name: options.pop(name) for name in names if name in options}
        settings = Settings(**{"rounds": 8, "seed": SEED, "eval_every": 2, **options})
        result = loop.train(
            make_process(method) if isinstance(method, str) else method,
            clients,
            schedule,
            settings,
            folder=folder,
            **{"config": CONFIG, **arguments},
        )
        result.client_states.close()
        return result

    return run


@pytest.fixture(scope="module")
def reference(each_runtime, tmp_path_factory, make_process, population):
    """The files of a run of 8 rounds that nothing interrupted."""
    folder = tmp_path_factory.mktemp("reference")
    settings = Settings(rounds=8, seed=SEED, eval_every=2)
    loop.train(
        make_process("hdafl"), population, UNIFORM, settings, folder=folder, config=CONFIG
    ).client_states.close()
    return tables(folder)


def tables(folder) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in ("metrics.csv", "clients.csv")}


def rows(folder, name="metrics.csv") -> list[dict[str, str]]:
    with (folder / name).open() as file:
        return list(csv.DictReader(file))


def events(folder) -> dict[str, dict[int, float]]:
    """Returns {name: {round: value}}."""
    found = EventAccumulator(str(folder / "tensorboard")).Reload()
    return {
        name: {event.step: event.value for event in found.Scalars(name)}
        for name in found.Tags()["scalars"]
    }


def saved_round(folder) -> int | None:
    saved = Checkpoints(path_in(folder), CONFIG)
    found = saved.latest_round()
    saved.close()
    return found


# --- Rows -------------------------------------------------------------------------------------


def test_rows_of_a_run(train, tmp_path):
    result = train(tmp_path, rounds=5)
    assert result.rounds == 5 and result.stopped_by is None
    metrics = rows(tmp_path)
    assert [row["round"] for row in metrics] == ["1", "2", "3", "4", "5"]
    # Evaluated when due and after the last round, otherwise empty.
    evaluated = [row["local_test_accuracy_mean"] != "" for row in metrics]
    assert evaluated == [False, True, False, True, True]
    for row, numbers in zip(metrics, result.rows, strict=True):
        # Text gives back every digit.
        assert {k: float(v) for k, v in row.items() if v} == numbers
    for round_num, row in enumerate(result.rows):
        assert row["clients"] == 2
        assert row["train_num_examples"] == sum(12 + client for client in UNIFORM(round_num))
        assert row["bytes_up"] > 0 and row["bytes_down"] > 0


def of_untrained(process, state, population):
    return local_tests(
        process, state, population, lambda c: process.init_state(c, SEED, state), ["test"]
    )["test"]


def test_every_client_is_evaluated_sampled_or_not(train, make_process, population, tmp_path):
    result = train(tmp_path, rounds=4, schedule=lambda round_num: [1, 3])
    clients = rows(tmp_path, "clients.csv")
    assert [row["round"] for row in clients] == ["2"] * NUM_CLIENTS + ["4"] * NUM_CLIENTS
    last = clients[NUM_CLIENTS:]
    assert [row["client"] for row in last] == list(population.ids)
    assert [row["rounds_trained"] for row in last] == ["0", "4", "0", "4", "0"]
    assert [row["num_examples"] for row in last] == ["6", "7", "8", "9", "10"]
    assert {row["split"] for row in last} == {"test"}
    # Clients that never trained are tested with their initial state and the newest features.
    process = make_process("hdafl")
    untrained = of_untrained(process, result.state, population)
    for client in (0, 2, 4):
        assert float(last[client]["loss"]) == untrained.loss[client]
    for client in (1, 3):
        assert float(last[client]["loss"]) < untrained.loss[client]


def test_clients_that_only_train_are_not_evaluated(train, make_process, population, tmp_path):
    """Centralised training: the real clients are tested with the pooled client's model."""
    process = make_process("fed_avg")
    result = train(
        tmp_path,
        rounds=2,
        method=process,
        clients=population.with_pooled(),
        schedule=cohorts.always(NUM_CLIENTS),
        evaluated=population,
        ledger=communication.staying_put(process),
    )
    metrics, clients = rows(tmp_path), rows(tmp_path, "clients.csv")
    assert [row["client"] for row in clients] == list(population.ids)
    assert {row["rounds_trained"] for row in clients} == {"0"}
    everything = sum(12 + client for client in range(NUM_CLIENTS))
    assert {row["train_num_examples"] for row in metrics} == {str(everything)}
    assert {(row["clients"], row["bytes_up"], row["bytes_down"]) for row in metrics} == {
        ("1", "0", "0")
    }
    expected = of_untrained(process, result.state, population)
    assert [float(row["loss"]) for row in clients] == expected.loss.tolist()


def drawn(number: int) -> cohorts.Schedule:
    return cohorts.uniform(NUM_CLIENTS, number, SEED, seeding.EVALUATED_CLIENTS)


def test_a_sample_is_evaluated_and_said(train, population, tmp_path):
    train(tmp_path / "all")
    train(tmp_path / "sample", evaluation_cohorts=drawn(2))
    chosen = {str(done): drawn(2)(done) for done in (2, 4, 6, 8)}
    assert len({tuple(own) for own in chosen.values()}) > 1
    clients = rows(tmp_path / "sample", "clients.csv")
    everyone = rows(tmp_path / "all", "clients.csv")
    assert [(row["round"], row["client"]) for row in clients] == [
        (done, population.ids[client]) for done, own in chosen.items() for client in own
    ]
    assert all(row in everyone for row in clients)  # Each with what it has when all are evaluated.
    for row in rows(tmp_path / "sample"):
        own = [float(one["accuracy"]) for one in clients if one["round"] == row["round"]]
        assert row["evaluated_clients"] == ("2" if own else "")
        assert not own or float(row["local_test_accuracy_mean"]) == np.mean(own)
    assert "evaluated_clients" not in rows(tmp_path / "all")[0]


def test_a_sampled_run_goes_on_with_the_same_bytes(train, tmp_path):
    train(tmp_path / "whole", evaluation_cohorts=drawn(3))
    for rounds in (5, 8):  # The first evaluates after its end, where the second does not.
        train(tmp_path / "parts", rounds=rounds, evaluation_cohorts=drawn(3))
    assert tables(tmp_path / "parts") == tables(tmp_path / "whole")


def test_what_a_sample_has_no_examples_for_is_left_empty(train, make_population, tmp_path):
    first, *others = make_population(NUM_CLIENTS, 4)
    nothing = {name: column[:0] for name, column in first.train.items()}
    others = [dataclasses.replace(client, validation=nothing) for client in others]
    options = {"clients": Population([first, *others]), "goal": Goal(0.01), "rounds": 4}
    result = train(tmp_path, evaluation_cohorts=cohorts.always(2), **options)
    assert not result.goal_reached and result.rounds == 4
    last = rows(tmp_path)[-1]
    assert last["local_validation_loss_mean"] == "" != last["local_test_loss_mean"]
    result = train(evaluation_cohorts=cohorts.always(0), **options)
    assert result.goal_reached and result.rounds == 2


def test_evaluated_clients_keep_their_places(train, population):
    with pytest.raises(ValueError, match=r"first clients, device 0, .*found device 1"):
        train(evaluated=population[1:])


def test_evaluation_agrees_with_the_rows_of_clients(train, tmp_path):
    result = train(tmp_path, rounds=2)
    row = rows(tmp_path)[-1]
    clients = rows(tmp_path, "clients.csv")
    accuracy = np.array([float(c["accuracy"]) for c in clients])
    loss = np.array([float(c["loss"]) for c in clients])
    n = np.array([int(c["num_examples"]) for c in clients])
    expected = {
        "local_test_accuracy_mean": accuracy.mean(),
        "local_test_accuracy_weighted_mean": (accuracy * n).sum() / n.sum(),
        "local_test_accuracy_std": accuracy.std(),
        "local_test_accuracy_min": accuracy.min(),
        "local_test_accuracy_worst_decile": accuracy.min(),  # One client of five.
        "local_test_loss_mean": loss.mean(),
        "local_test_loss_weighted_mean": (loss * n).sum() / n.sum(),
    }
    assert {k: float(v) for k, v in row.items() if k.startswith("local")} == pytest.approx(expected)
    np.testing.assert_array_equal(result.evaluation.local["test"].accuracy, accuracy)


def test_validation_has_columns_where_clients_have_examples(train, make_population, tmp_path):
    result = train(tmp_path, clients=make_population(NUM_CLIENTS, validation=4), rounds=2)
    assert set(result.evaluation.local) == {"test", "validation"}
    row = rows(tmp_path)[-1]
    validation = [c for c in rows(tmp_path, "clients.csv") if c["split"] == "validation"]
    assert len(validation) == NUM_CLIENTS and {c["num_examples"] for c in validation} == {"4"}
    accuracy = [float(c["accuracy"]) for c in validation]
    assert float(row["local_validation_accuracy_mean"]) == pytest.approx(np.mean(accuracy))
    assert not any("validation" in name for name in train(rounds=1).rows[0])


@pytest.mark.parametrize("method", ["fed_avg", "fed_avg_ft"])
def test_global_model_on_all_clients_examples_or_on_a_common_set(
    train, make_process, population, tmp_path, method
):
    process = make_process(method)
    pooled = {
        name: np.concatenate([client.test[name] for client in population]) for name in ("x", "y")
    }
    result = train(tmp_path, method=method, rounds=1)
    expected = global_test(process, result.state, pooled)
    found = result.evaluation.global_test
    assert found.accuracy == pytest.approx(expected.accuracy)
    assert found.loss == pytest.approx(expected.loss)
    (row,) = rows(tmp_path)
    assert float(row["global_test_loss"]) == found.loss
    local = float(row["local_test_loss_weighted_mean"])  # Of adapted models, where they are.
    assert process.adapts == (local != pytest.approx(found.loss))

    common = {name: column[:7] for name, column in pooled.items()}
    result = train(method=method, rounds=1, test_examples=common)
    assert result.evaluation.global_test == global_test(process, result.state, common)


def test_personal_models_have_no_global_test(train, tmp_path):
    assert train(tmp_path, rounds=1).evaluation.global_test is None
    assert not any(name.startswith("global") for name in rows(tmp_path)[0])


def test_tensorboard_and_times(train, tmp_path):
    train(tmp_path, rounds=3)
    result = train(tmp_path, rounds=5)
    found = events(tmp_path)
    assert set(found["train_loss"]) == {1, 2, 3, 4, 5}  # Once each, also those of the first run.
    for row in result.rows:
        assert found["train_loss"][row["round"]] == pytest.approx(row["train_loss"])
    assert set(found["local_test_accuracy_mean"]) == {2, 4, 5}
    times = rows(tmp_path, "times.csv")
    assert [row["round"] for row in times] == ["1", "2", "3", "4", "5"]
    assert all(float(row["training_seconds"]) > 0 for row in times)


# --- The same with and without --------------------------------------------------------------


def test_without_a_folder(train, reference, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = train()
    assert list(tmp_path.iterdir()) == []
    lines = reference["metrics.csv"].decode().splitlines()
    assert [row["train_loss"] for row in result.rows] == [
        float(line.split(",")[lines[0].split(",").index("train_loss")]) for line in lines[1:]
    ]


def test_on_round_sees_every_row(train):
    seen = []
    result = train(rounds=3, on_round=lambda row, seconds: seen.append(dict(row)))
    assert seen == result.rows and len(seen) == 3


@pytest.mark.parametrize(
    "options",
    [
        {"states_in_memory": False},
        {"checkpoint_every": 3},
        {"checkpoint_every": 3, "states_in_memory": False},
    ],
    ids=str,
)
def test_how_states_are_kept_changes_nothing(train, reference, tmp_path, options):
    train(tmp_path, **options)
    assert tables(tmp_path) == reference
    assert saved_round(tmp_path) == 8


def test_sequential_devices(train, population):
    """One device after another, each for two rounds: a schedule, no other loop."""
    result = train(
        rounds=6,
        schedule=lambda r: [r // 2],
        clients=population[:3],
        method="fed_avg",
        eval_every=6,
    )
    assert [row["train_num_examples"] for row in result.rows] == [12, 12, 13, 13, 14, 14]
    assert list(result.evaluation.local["test"].rounds) == [2, 2, 2]


# --- Stopping and going on --------------------------------------------------------------------


class BrokenError(Exception):
    pass


def test_on_evaluation_sees_every_client(train):
    """After rounds 2 and 4 and the last, whose numbers are the row's."""
    seen = {}
    result = train(rounds=5, on_evaluation=seen.__setitem__)
    assert list(seen) == [2, 4, 5]
    for done, evaluation in seen.items():
        accuracy = evaluation.local["test"].accuracy
        assert accuracy.shape == (NUM_CLIENTS,)
        row = result.rows[done - 1]
        assert row["local_test_accuracy_mean"] == pytest.approx(accuracy.mean())


def fail_after(rounds: int):
    def on_round(row, seconds):
        if row["round"] == rounds:
            raise BrokenError

    return on_round


@pytest.mark.parametrize("states_in_memory", [True, False], ids=["memory", "disk"])
@pytest.mark.parametrize("checkpoint_every", [1, 3])
def test_run_that_failed_goes_on_to_the_same_bytes(
    train, reference, tmp_path, states_in_memory, checkpoint_every
):
    options = {"states_in_memory": states_in_memory, "checkpoint_every": checkpoint_every}
    trained = []
    for rounds in (1, 2, 5, 7):
        with pytest.raises(BrokenError):
            train(
                tmp_path,
                on_round=fail_after(rounds),
                schedule=lambda r: (trained.append(r), UNIFORM(r))[1],
                **options,
            )
    result = train(tmp_path, **options)
    assert tables(tmp_path) == reference
    assert result.rounds == 8
    if checkpoint_every == 3:  # What was not saved was done again: from 0, 0, 0 and 3 on.
        assert trained == [0, 0, 1, 0, 1, 2, 3, 4, 3, 4, 5, 6]
    else:
        assert trained == [0, 1, 2, 3, 4, 5, 6]


def test_tables_are_brought_back_to_the_last_checkpoint(train, reference, tmp_path):
    with pytest.raises(BrokenError):
        train(tmp_path, on_round=fail_after(5))
    with (tmp_path / "metrics.csv").open("a") as file:
        file.write("6,half a li")
    (tmp_path / "clients.csv").unlink()
    train(tmp_path)
    assert tables(tmp_path) == reference


def test_complete_run_is_evaluated_again_and_not_trained(train, reference, tmp_path):
    first = train(tmp_path)
    again = train(tmp_path, schedule=None)  # Would fail if it were called.
    assert again.rows == [] and again.rounds == 8
    for name in ("accuracy", "loss", "rounds"):
        np.testing.assert_array_equal(
            getattr(again.evaluation.local["test"], name),
            getattr(first.evaluation.local["test"], name),
        )
    tf.nest.map_structure(np.testing.assert_array_equal, again.state, first.state)
    assert tables(tmp_path) == reference


@pytest.mark.parametrize("eval_every", [2, 3])
def test_longer_run_ends_as_if_it_had_been_so_from_the_start(train, tmp_path, eval_every):
    train(tmp_path / "at once", eval_every=eval_every)
    train(tmp_path / "extended", rounds=4, eval_every=eval_every)
    assert rows(tmp_path / "extended")[-1]["local_test_accuracy_mean"]
    train(tmp_path / "extended", eval_every=eval_every)
    assert tables(tmp_path / "extended") == tables(tmp_path / "at once")
    found = events(tmp_path / "extended")["local_test_accuracy_mean"]
    assert set(found) == {r for r in range(1, 9) if r % eval_every == 0 or r == 8}


def test_shorter_run_is_refused(train, reference, tmp_path):
    train(tmp_path)
    with pytest.raises(CheckpointError, match="has 8 rounds already, more than the 4 asked for"):
        train(tmp_path, rounds=4)
    assert tables(tmp_path) == reference


def test_run_of_other_settings_is_refused_and_untouched(train, reference, tmp_path):
    train(tmp_path)
    with pytest.raises(CheckpointError, match="seed: 3 there, 4 now"):
        train(tmp_path, config={"seed": 4})
    assert tables(tmp_path) == reference


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signal_ends_the_run_after_the_round(train, reference, tmp_path, number):
    def schedule(round_num):
        if round_num == 3:
            os.kill(os.getpid(), number)
        return UNIFORM(round_num)

    result = train(tmp_path, schedule=schedule, checkpoint_every=3)
    assert (result.rounds, result.stopped_by) == (4, number)
    assert saved_round(tmp_path) == 4
    assert [row["round"] for row in rows(tmp_path)] == ["1", "2", "3", "4"]
    assert train(tmp_path, checkpoint_every=3).stopped_by is None
    assert tables(tmp_path) == reference


@pytest.mark.parametrize("checkpoint_every", [1, 4])
def test_signal_after_a_round_begins_no_other(train, reference, tmp_path, checkpoint_every):
    def on_round(row, _):
        if row["round"] == 3:
            os.kill(os.getpid(), signal.SIGTERM)

    result = train(tmp_path, on_round=on_round, checkpoint_every=checkpoint_every)
    assert (result.rounds, result.stopped_by) == (3, signal.SIGTERM)
    assert saved_round(tmp_path) == 3 and len(rows(tmp_path)) == 3
    train(tmp_path)
    assert tables(tmp_path) == reference


def test_without_a_folder_a_signal_interrupts(train):
    """There is nothing to go on from: half a training must not pass for a whole one."""

    def schedule(round_num):
        if round_num == 3:
            os.kill(os.getpid(), signal.SIGINT)
        return UNIFORM(round_num)

    with pytest.raises(KeyboardInterrupt):
        train(schedule=schedule)


def test_signal_in_the_last_round_is_told(train, reference, tmp_path):
    def schedule(round_num):
        if round_num == 7:
            os.kill(os.getpid(), signal.SIGINT)
        return UNIFORM(round_num)

    result = train(tmp_path, schedule=schedule)
    assert (result.rounds, result.stopped_by) == (8, signal.SIGINT)
    assert result.evaluation is not None
    assert tables(tmp_path) == reference


def test_second_ctrl_c_interrupts_at_once(train, reference, tmp_path):
    def schedule(round_num):
        if round_num == 3:
            os.kill(os.getpid(), signal.SIGINT)
            os.kill(os.getpid(), signal.SIGINT)
        return UNIFORM(round_num)

    with pytest.raises(KeyboardInterrupt):
        train(tmp_path, schedule=schedule)
    assert len(rows(tmp_path)) == 3
    train(tmp_path)
    assert tables(tmp_path) == reference


def test_population_may_grow(train, make_population, population, tmp_path):
    first = train(tmp_path, clients=population[:3], schedule=lambda r: [0, 2], rounds=2)
    result = train(tmp_path, schedule=lambda r: [2, 4], rounds=4)
    clients = rows(tmp_path, "clients.csv")
    assert [row["client"] for row in clients if row["round"] == "2"] == list(population.ids[:3])
    assert list(result.evaluation.local["test"].rounds) == [2, 0, 4, 0, 2]
    kept = [r.client_states._states[0].model.trainable for r in (first, result)]
    tf.nest.map_structure(np.testing.assert_array_equal, *kept)  # By index.
    before = tables(tmp_path)
    grown = population.grown_by([dataclasses.replace(population[0], id="new", group="other")])
    with pytest.raises(CheckpointError, match="has the columns round,"):
        train(tmp_path, clients=grown, schedule=lambda r: [5], rounds=6)
    assert tables(tmp_path) == before


def test_what_failed_before_its_first_round_leaves_no_settings(train, reference, tmp_path):
    with pytest.raises(ValueError, match="A round's clients are different ones"):
        train(tmp_path, schedule=lambda r: [99], config={"seed": 4})
    train(tmp_path)
    assert tables(tmp_path) == reference


@pytest.mark.parametrize("drawn", [[], [0, 0], [NUM_CLIENTS]])
def test_evaluated_clients_are_checked(train, drawn):
    with pytest.raises(ValueError, match="one or more different ones from 0 to 4"):
        train(rounds=2, evaluation_cohorts=lambda r: drawn)


def test_closed_states_say_so(train, tmp_path):
    result = train(tmp_path, states_in_memory=False)
    with pytest.raises(CheckpointError, match="was closed: read clients' states before that"):
        result.client_states.get(0, result.state)
    result.client_states.close()


# --- Until a goal -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def validated(make_population) -> Population:
    """Clients with validation examples."""
    return make_population(NUM_CLIENTS, validation=7)


@pytest.fixture(scope="module")
def without_goal(each_runtime, tmp_path_factory, make_process, validated):
    """The folder of 8 rounds that no goal ended."""
    folder = tmp_path_factory.mktemp("without goal")
    settings = Settings(rounds=8, seed=SEED, eval_every=2)
    loop.train(
        make_process("hdafl"), validated, UNIFORM, settings, folder=folder, config=CONFIG
    ).client_states.close()
    return folder


def goal_and_end(folder, split: str) -> tuple[Goal, int]:
    """A goal that is the accuracy after round 4, and when it is first seen to be reached."""
    accuracy = {
        int(row["round"]): float(row[f"local_{split}_accuracy_mean"])
        for row in rows(folder)
        if row[f"local_{split}_accuracy_mean"]
    }
    assert list(accuracy) == [2, 4, 6, 8] and accuracy[4] > 0
    return Goal(accuracy[4], split), min(r for r in accuracy if accuracy[r] >= accuracy[4])


def prefix(folder, last_round: int) -> dict[str, bytes]:
    """The tables of a run up to a round."""
    found = {}
    for name, content in tables(folder).items():
        head, *lines = content.splitlines(keepends=True)
        found[name] = b"".join([head, *(x for x in lines if int(x.split(b",")[0]) <= last_round)])
    return found


@pytest.mark.parametrize("split", ["validation", "test"])
def test_goal_ends_training_when_an_evaluation_reaches_it(
    train, validated, without_goal, tmp_path, split
):
    goal, end = goal_and_end(without_goal, split)
    result = train(tmp_path, clients=validated, goal=goal)
    assert (result.rounds, result.goal_reached, result.is_complete) == (end, True, True)
    assert result.evaluation.local[split].accuracy.mean() >= goal.accuracy
    assert tables(tmp_path) == prefix(without_goal, end)
    assert saved_round(tmp_path) == end


def test_goal_out_of_reach_leaves_all_rounds(train, validated, without_goal, tmp_path):
    best = max(float(row["local_validation_accuracy_mean"] or 0) for row in rows(without_goal))
    assert best < 1.0
    result = train(tmp_path, clients=validated, goal=Goal(1.0))
    assert (result.rounds, result.goal_reached, result.is_complete) == (8, False, True)
    assert tables(tmp_path) == tables(without_goal)


def test_run_that_reached_its_goal_is_not_trained_again(train, validated, without_goal, tmp_path):
    goal, _ = goal_and_end(without_goal, "validation")
    first = train(tmp_path, clients=validated, goal=goal)
    before = tables(tmp_path)
    again = train(tmp_path, clients=validated, goal=goal, schedule=None)  # Would fail if called.
    assert again.rows == [] and again.stopped_by is None
    assert (again.rounds, again.goal_reached) == (first.rounds, True)
    for split in ("test", "validation"):
        np.testing.assert_array_equal(
            again.evaluation.local[split].accuracy, first.evaluation.local[split].accuracy
        )
    tf.nest.map_structure(np.testing.assert_array_equal, again.state, first.state)
    assert tables(tmp_path) == before


@pytest.mark.parametrize("options", [{}, {"states_in_memory": False, "checkpoint_every": 3}])
def test_interrupted_before_its_goal_it_ends_there_all_the_same(
    train, validated, without_goal, tmp_path, options
):
    """In its first round, and in that which reaches the goal."""
    goal, end = goal_and_end(without_goal, "validation")
    whole = train(tmp_path / "whole", clients=validated, goal=goal)
    for rounds in (1, end):
        with pytest.raises(BrokenError):
            train(
                tmp_path / "broken",
                clients=validated,
                goal=goal,
                on_round=fail_after(rounds),
                **options,
            )
    # The last of these has kept its round.
    result = train(tmp_path / "broken", clients=validated, goal=goal, schedule=None, **options)
    assert (result.rounds, result.goal_reached) == (end, True)
    assert tables(tmp_path / "broken") == tables(tmp_path / "whole")
    tf.nest.map_structure(np.testing.assert_array_equal, result.state, whole.state)


def test_evaluation_out_of_turn_does_not_end_a_longer_run(train, validated, tmp_path):
    """Any accuracy reaches this goal; the first run ends before the goal is looked for."""
    goal = Goal(1e-6)
    first = train(tmp_path / "extended", clients=validated, goal=goal, rounds=1)
    assert (first.rounds, first.goal_reached, first.is_complete) == (1, False, True)
    assert first.evaluation.local["validation"].accuracy.mean() >= goal.accuracy
    longer = train(tmp_path / "extended", clients=validated, goal=goal)
    at_once = train(tmp_path / "at once", clients=validated, goal=goal)
    assert (longer.rounds, longer.goal_reached) == (at_once.rounds, at_once.goal_reached)
    assert at_once.rounds == 2
    assert tables(tmp_path / "extended") == tables(tmp_path / "at once")


def test_goal_needs_examples_to_be_judged_on(train, tmp_path):
    with pytest.raises(ValueError, match="judged on validation examples, of which no client has"):
        train(tmp_path / "run", goal=Goal(0.5))
    assert not (tmp_path / "run").exists()
    assert train(goal=Goal(1e-6, "test")).rounds == 2


@pytest.mark.parametrize("accuracy", [0.0, -0.1, 1.01, math.nan])
def test_goals_are_accuracies(accuracy):
    with pytest.raises(ValueError, match=rf"an accuracy in \(0, 1\], found {accuracy}"):
        Goal(accuracy)
    with pytest.raises(ValueError, match="validation or test, found 'train'"):
        Goal(0.5, "train")


# --- Divergence and settings --------------------------------------------------------------


def test_divergence_is_an_error_with_advice(train, make_process, tmp_path):
    with pytest.raises(
        DivergedError, match=r"train_loss of round \d is (nan|inf).* Lower the client learning rate"
    ):
        train(tmp_path, method=make_process("hdafl", 1e30))
    done = rows(tmp_path)
    assert all(math.isfinite(float(v)) for row in done for v in row.values() if v)
    assert saved_round(tmp_path) == (int(done[-1]["round"]) if done else None)


def test_divergence_in_the_last_step_of_a_round_is_seen(train, make_process, population):
    # A single step: the loss before it is fine, the model after it is not.
    process = make_process("fed_avg", 1e38)
    few = Population(
        type(client)(
            client.id, {k: v[:3] for k, v in client.train.items()}, client.validation, client.test
        )
        for client in population
    )
    with pytest.raises(DivergedError, match="state of the server after round 1 is not finite"):
        train(method=process, clients=few, rounds=2, eval_every=2)


@pytest.mark.parametrize("name", ["rounds", "eval_every", "checkpoint_every"])
def test_settings_are_checked(name):
    for wrong in (0, 1.5):
        with pytest.raises(
            ValueError, match=f"{name}: expected a whole number from 1 .*found {wrong}"
        ):
            Settings(**{"rounds": 1, "seed": 0, name: wrong})
    with pytest.raises(ValueError, match="seed: expected a whole number"):
        Settings(rounds=1, seed=1.5)
