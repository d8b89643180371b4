"""The device that joins: its images, and what each number of the table is made of."""

import csv
import dataclasses

import numpy as np
import pytest

from experiments.lg_fedavg import online
from tff_het import datasets
from tff_het.clients import Client, Population
from tff_het.simulation import loop, runtime

CLIENTS, LATER, JOINS = 4, 4, 4
FLAGS = {
    "dataset": "digits",
    "partition": "shards",
    "shards_per_client": "2",
    "num_clients": str(CLIENTS),
    "model": "mlp",
    "clients_per_round": "2",
    "validation_fraction": "0.1",
    "rounds": "6",
    "goal_accuracy": "0.3",
    "proximal_strength": "1.0",
}


@pytest.fixture(scope="module")
def digits() -> datasets.Dataset:
    return datasets.load("digits")


def join(folder, **changed):
    """Joins in the settings of all tests."""
    arguments = {
        "flags": FLAGS,
        "fractions": [0.0, 0.5],
        "rounds": LATER,
        "eval_every": 3,
        "local_epochs": 3,
        "num_train": 100,
        "num_test": 50,
        **changed,
    }
    with runtime.use("in_process"):
        return online.join(seed=1, folder=folder, data_dir=None, **arguments)


class Recorded:
    """The trainings of one call, in order: the one to the goal, then all ways at C = 0 and 0.5."""

    def __init__(self, folder):
        self.folder = folder
        self.calls = []
        train = loop.train

        def recorded(process, population, *args, **kwargs):
            result = train(process, population, *args, **kwargs)
            self.calls.append((process, population, result, kwargs.get("start")))
            return result

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(loop, "train", recorded)
            self.found = join(folder)

    def of(self, way: str, fraction: str):
        """Process, population, result and start of one of the later trainings."""
        number = list(online.WAYS).index(way) + len(online.WAYS) * (fraction != "0")
        return self.calls[1 + number]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory) -> Recorded:
    return Recorded(tmp_path_factory.mktemp("join"))


def test_images_are_turned_and_labels_are_not(digits):
    device = online.rotated_device(digits, 3, 200, 100)
    for split, num in (("train", 200), ("test", 100)):
        source, drawn = getattr(digits, split), getattr(device, split)
        assert drawn["x"].shape == (num, 8, 8, 1) and drawn["x"].dtype == np.uint8
        # Counter-clockwise: what was the last column is the first row.
        by_content = {
            source["x"][row].transpose(1, 0, 2)[::-1].tobytes(): row
            for row in range(len(source["y"]))
        }
        rows = [by_content[image.tobytes()] for image in drawn["x"]]
        assert len(set(rows)) == num
        np.testing.assert_array_equal(drawn["y"], source["y"][rows])
    assert len(device.validation["y"]) == 0
    other = online.rotated_device(digits, 4, 200, 100)
    assert not np.array_equal(other.train["x"], device.train["x"])
    again = online.rotated_device(digits, 3, 200, 50)  # Other test images change no others.
    np.testing.assert_array_equal(again.train["x"], device.train["x"])


def test_what_cannot_be_turned_or_drawn_is_refused(digits):
    with pytest.raises(ValueError, match="larger sample than population"):  # Of 360.
        online.rotated_device(digits, 0, 10, 361)
    halves = {
        split: {**getattr(digits, split), "x": getattr(digits, split)["x"][:, :4]}
        for split in ("train", "test")
    }
    flat = dataclasses.replace(digits, **halves)
    old = Client("old", flat.train, flat.test, flat.test)
    with pytest.raises(ValueError, match=r"shapes of one example; .*\(4, 8, 1\).*\(8, 4, 1\)"):
        Population([old, online.rotated_device(flat, 0, 10, 10)])


def accuracy(weights, examples) -> float:
    """Of a network of two layers, in NumPy."""
    w1, b1, w2, b2 = weights
    x = examples["x"].reshape(len(examples["y"]), -1) / 255
    logits = np.maximum(x @ w1 + b1, 0) @ w2 + b2
    return float(np.mean(logits.argmax(axis=1) == examples["y"]))


def of_device(population, result, client: int) -> float:
    """A device's own model on its own test examples."""
    last = result.state.weights.trainable
    weights = list(last)
    if len(last) == 2:  # The first layer is the device's own.
        own = result.client_states.get(client, result.state)
        weights = [*own.model.trainable, *last]
    return accuracy(weights, population[client].test)


@pytest.mark.slow
@pytest.mark.parametrize("fraction", ["0", "0.5"])
@pytest.mark.parametrize("way", list(online.WAYS))
def test_normal_is_the_old_devices_and_rotated_the_new_ones(recorded, way, fraction):
    _, population, result, _ = recorded.of(way, fraction)
    own = [of_device(population, result, k) for k in range(CLIENTS + 1)]
    assert recorded.found[f"{way}/{fraction}/normal"] == pytest.approx(np.mean(own[:-1]))
    assert recorded.found[f"{way}/{fraction}/rotated"] == pytest.approx(own[-1])


@pytest.mark.slow
def test_all_start_from_the_model_at_the_goal(recorded):
    _, population, before, _ = recorded.calls[0]
    assert before.goal_reached and len(population) == CLIENTS
    weights = before.state.weights.trainable
    assert recorded.found["goal_rounds"] == before.rounds
    normal = [accuracy(weights, client.test) for client in population]
    assert recorded.found["before_normal"] == pytest.approx(np.mean(normal))
    for fraction in ("0", "0.5"):
        for way in online.WAYS:
            _, grown, _, start = recorded.of(way, fraction)
            assert grown.ids == (*population.ids, "rotated")
            rotated = accuracy(weights, grown[JOINS].test)
            assert recorded.found["before_rotated"] == pytest.approx(rotated)
            for value, expected in zip(start.values.values(), weights, strict=True):
                np.testing.assert_array_equal(value, expected)
            assert set(start.clients) == ({JOINS} if way == "lg_local_first" else set())


@pytest.mark.slow
def test_the_local_part_is_fitted_to_a_global_one_that_stays(recorded):
    _, grown, _, start = recorded.of("lg_local_first", "0")
    own = start.clients[JOINS]
    for path, value in start.values.items():
        assert np.array_equal(own[path], value) == path.startswith("output/"), path
    found = accuracy(own.values(), grown[JOINS].test)
    assert recorded.found["fitted_rotated"] == pytest.approx(found)
    assert found > recorded.found["before_rotated"] + 0.1


@pytest.mark.slow
def test_who_trains(recorded):
    """The new device in each round; of the others none, or half, in no local part but their own."""
    for way in ("lg_local_first", "lg_at_once"):
        first = way == "lg_local_first"  # A state of one's own counts as a round.
        for fraction, others in (("0", 0), ("0.5", 2)):
            _, grown, result, start = recorded.of(way, fraction)
            states = [result.client_states.get(k, result.state) for k in range(len(grown))]
            assert states[JOINS].rounds == LATER + first
            assert sum(state.rounds for state in states[:JOINS]) == others * LATER
            for state in states[:JOINS]:
                unchanged = np.array_equal(state.model.trainable[0], start.values["dense_1/kernel"])
                assert unchanged == (state.rounds == 0)


@pytest.mark.slow
def test_curves_begin_before_and_end_in_the_table(recorded):
    with (recorded.folder / online.CURVES).open(newline="") as file:
        rows = {int(row.pop("round")): row for row in csv.DictReader(file)}
    assert list(rows) == [0, 3, LATER]
    found = recorded.found
    for way in online.WAYS:
        fitted = "fitted" if way == "lg_local_first" else "before"
        for place in (f"{way}/0", f"{way}/0.5"):
            for done, normal, rotated in (
                (0, found["before_normal"], found[f"{fitted}_rotated"]),
                (LATER, found[f"{place}/normal"], found[f"{place}/rotated"]),
            ):
                values = [float(rows[done][f"{place}/{images}"]) for images in online.IMAGES]
                assert values == [normal, rotated]
    assert all(len(row) == 2 * 2 * len(online.WAYS) for row in rows.values())


@pytest.mark.slow
def test_pictures_are_of_all_classes(recorded, digits):
    pictures = np.load(recorded.folder / online.PICTURES)
    labels = digits.train["y"].tolist()
    np.testing.assert_array_equal(
        pictures["normal"], [digits.train["x"][labels.index(label)] for label in range(10)]
    )
    assert pictures["rotated"].shape[1:] == (8, 8, 1)


def test_a_goal_out_of_reach_is_an_error(tmp_path):
    out_of_reach = {**FLAGS, "rounds": "1", "goal_accuracy": "1.0"}
    with pytest.raises(ValueError, match=r"FedAvg has not reached .*accuracy=1\.0.* in 1 rounds"):
        join(tmp_path, flags=out_of_reach)
