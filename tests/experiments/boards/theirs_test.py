"""What others' code draws: sizes that its own code gives, of classes as large as theirs."""

import numpy as np
import pytest

from experiments.run import plugins
from tff_het import partitions
from tff_het.backend.names import keras
from tff_het.models.layers import Layers
from tff_het.models.registry import NETWORKS

# Of MNIST: the training file, and both files together.
TRAIN = (5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949)
WHOLE = (6903, 7877, 6990, 7141, 6824, 6313, 6876, 7293, 6825, 6958)


@pytest.fixture(autouse=True)
def _plugin():
    plugins.load(["experiments.boards.theirs"])


def of(name, totals, num_clients, seed=0):
    y = np.repeat(np.arange(10), totals).astype(np.int32)
    columns = {"x": np.zeros((len(y), 1), np.float32), "y": y}
    few = {key: value[::10] for key, value in columns.items()}
    made = partitions.make(name, columns, few, num_clients=num_clients, seed=seed)
    return [y[client] for client in made.train]


def test_flower_draws_the_dirichlet_sizes_of_seed_42():
    sizes = [len(own) for own in of("flower_dirichlet", TRAIN, 10)]
    assert sizes == [6631, 9475, 6099, 6004, 5074, 5106, 7397, 3742, 6052, 4420]
    equal = [len(own) for own in of("flower_dirichlet", [6000] * 10, 10)]
    assert equal == [6370, 2405, 6357, 6470, 7449, 6873, 4416, 8072, 4399, 7189]


def test_flower_draws_the_classes_of_seed_42():
    found = [{*own} for own in of("flower_classes", TRAIN, 10)]
    assert found == [{0, 7}, {1, 6}, {2, 4}, {3, 4}, {4, 8}, {5, 0}, {6, 2}, {7, 0}, {8, 5}, {9, 7}]


def test_perm_fl_draws_the_sizes_of_its_seeds():
    for totals, number in ((WHOLE, 39_669), ([7000] * 10, 39_680)):
        found = of("perm_fl_classes", totals, 40)
        assert sum(map(len, found)) == number
        assert all({*own} == {k % 10, (k + 1) % 10} for k, own in enumerate(found))
    assert max(map(len, found)) == 1_474


@pytest.mark.parametrize("name", ["flower_classes", "flower_dirichlet", "perm_fl_classes"])
def test_our_seeds_draw_which_examples_and_not_how_many(name):
    one, other = (of(name, [7000] * 10, 10, seed) for seed in (0, 1))
    assert [*map(len, one)] == [*map(len, other)]


def test_the_network_scales_pixels():
    x = keras.Input((4,))
    _, logits = NETWORKS["logistic_centred"](x, 3, Layers())
    model = keras.Model(x, logits)
    kernel, bias = model.get_weights()
    values = np.random.default_rng(0).uniform(size=(5, 4)).astype(np.float32)
    np.testing.assert_allclose(model(values), (2 * values - 1) @ kernel + bias, atol=1e-6)
