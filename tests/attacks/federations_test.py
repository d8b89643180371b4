"""Who holds what in federations of victims and shadows."""

import numpy as np
import pytest

from tff_het.attacks import federations
from tff_het.simulation import loop

NUM_CLIENTS, NUM_EXAMPLES = 2, 20


def test_nobody_shares_an_example():
    """Of examples that number themselves."""
    n = 200
    numbered = {"x": np.arange(n).astype(np.float32)[:, None], "y": np.zeros(n, np.int32)}
    *populations, own = federations.deal(numbered, NUM_CLIENTS, NUM_EXAMPLES, seed=0)
    parts = [own["x"]]
    for population in populations:
        assert len(population) == NUM_CLIENTS
        for client in population:
            parts += [client.train["x"], client.test["x"]]
    assert all(len(part) == NUM_EXAMPLES for part in parts)
    held = np.concatenate(parts)
    assert len(np.unique(held)) == len(held) == 9 * NUM_EXAMPLES
    *_, again = federations.deal(numbered, NUM_CLIENTS, NUM_EXAMPLES, seed=0)
    *_, other = federations.deal(numbered, NUM_CLIENTS, NUM_EXAMPLES, seed=1)
    np.testing.assert_array_equal(again["x"], own["x"])
    assert not np.array_equal(other["x"], own["x"])
    few = {name: column[:150] for name, column in numbered.items()}
    with pytest.raises(ValueError, match="come to 180; the data set has 150"):
        federations.deal(few, NUM_CLIENTS, NUM_EXAMPLES, seed=0)


@pytest.mark.parametrize(
    ("method", "parts"),
    [("fed_avg", {"fitted"}), ("scaffold", {"fitted"}), ("fed_avg_ft", {"fitted"})]
    + [(method, {"fitted", "initial", "private"}) for method in ("hdafl", "ditto")],
)
def test_a_model_that_clients_keep_is_attacked_too(world, method, parts):
    x = world.draw(90)
    dealt = federations.deal(x, num_clients=2, num_examples=10, seed=0)
    of = (world.build(method), loop.Settings(rounds=1, seed=0), world.training(1))
    found = federations.Federations(*of, *dealt)._attackers()
    assert found.keys() == parts
