"""XOR with two clients (Appendix A of CGAU), for Figure 3."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from tff_het import methods, seeding
from tff_het.backend.names import tff
from tff_het.clients import Client, Population
from tff_het.learning.client_work import LocalTraining
from tff_het.models import architectures, networks
from tff_het.simulation import cohorts, loop

FILE = "panels.npz"
GRID = np.linspace(-2, 2, 81)
_EXAMPLES, _SPREAD = 200, 0.2  # Of a client in training, and as many in its test.
# Name -> title, method, hidden units, the method's options.
NETWORKS = {
    "mlp": ("MLP, two ReLU units", "fed_avg", 2, {}),
    "cgau": ("CGAU, one gated unit", "cgau", 1, {}),
    "cgau_shared": (
        "CGAU, one gated unit, conditioning averaged",
        "cgau",
        1,
        {"variant": "shared_one_hot", "num_clients": 2},
    ),
}
ABLATIONS = {
    "without_modulation": "CGAU without client modulation",
    "without_expression": "CGAU without client expression",
}


def solve(
    *, seed: int, folder: Path, data_dir: str | None, rounds: int, steps: int
) -> dict[str, float]:
    """Trains all networks on XOR with an "up" and a "down" client.

    Args:
      seed: Of data, initial weights and batches.
      folder: Receives what the panels show, on a grid.
      data_dir: Not used.
      rounds: Of training.
      steps: Of each client in a round.

    Returns:
      The test accuracy of each network and ablation, of both clients together, and whether it is
      1 ("solved").
    """
    del data_dir
    population = Population([_client("up", 1, seed), _client("down", -1, seed)])
    # The grid's points belong to the client whose half they lie in.
    points = np.stack(np.meshgrid(GRID, GRID), axis=-1).reshape(-1, 2)  # [g, 2]
    panels: dict[str, np.ndarray] = {}
    found: dict[str, float] = {}
    for name, (_, method, units, options) in NETWORKS.items():
        weights = _train(population, method, units, options, seed, rounds, steps)
        found |= _scores(name, population, weights)
        panels |= {f"{name}_logits": _by_half(points, weights)}
        if name == "cgau":
            for part in ("filter", "gate"):
                bare = [{**own, f"v_{part}": np.zeros(1)} for own in weights]
                panels[f"{part}_bare"] = _by_half(points, bare, part)
                panels[part] = _by_half(points, weights, part)
            for ablation, part in zip(ABLATIONS, ("filter", "gate"), strict=True):
                without = [{**own, f"v_{part}": np.zeros(1)} for own in weights]
                found |= _scores(ablation, population, without)
                panels[f"{ablation}_logits"] = _by_half(points, without)
    np.savez_compressed(
        folder / FILE,
        points=points,
        x=np.concatenate([client.test["x"] for client in population]),
        y=np.concatenate([client.test["y"] for client in population]),
        **panels,
    )
    return found


def _client(name: str, side: int, seed: int) -> Client:
    """A client's points: one cluster of each class, both on its side of x_2 = 0."""
    rng = seeding.generator(seed, seeding.DATA, int(side > 0))

    def draw() -> dict[str, np.ndarray]:
        x_1 = rng.permutation(np.repeat([-1.0, 1.0], _EXAMPLES // 2))
        x = np.stack([x_1, np.full(_EXAMPLES, side)], axis=1) + rng.normal(
            scale=_SPREAD, size=(_EXAMPLES, 2)
        )
        x[:, 1] = side * np.abs(x[:, 1])
        # Opposite signs are the positive class.
        return {"x": x.astype(np.float32), "y": (x_1 * side < 0).astype(np.int32)}

    train, test = draw(), draw()
    return Client(name, train, {k: v[:0] for k, v in train.items()}, test)


def _train(
    population: Population,
    method: str,
    units: int,
    options: Mapping[str, object],
    seed: int,
    rounds: int,
    steps: int,
) -> list[dict[str, np.ndarray]]:
    """Returns each client's weights by name; `v_filter` and `v_gate` are its conditioning."""
    architecture = architectures.make(
        "xor", population.element_spec, 2, network=networks.mlp([units])
    )
    training = LocalTraining(
        tff.learning.optimizers.build_sgdm(0.1, momentum=0.9), batch_size=32, steps=steps
    )
    process = methods.build(method, architecture, training, seed=seed, **options)
    result = loop.train(
        process,
        population,
        cohorts.always(0, 1),
        loop.Settings(rounds=rounds, seed=seed, eval_every=rounds),
    )
    clients = []
    for client in range(len(population)):
        state = result.client_states.get(client, result.state)
        values = process.model.join(
            type(process.model.tensor_specs)(result.state.weights, state.model)
        )
        named = {
            spec.path.removeprefix("dense_1/"): np.asarray(value)
            for spec, value in zip(process.model.specs, values, strict=True)
        }
        for part in ("filter", "gate"):
            if (shift := named.pop(f"{part}_conditioning", None)) is not None:
                named[f"v_{part}"] = shift if shift.ndim == 1 else shift[client]
        clients.append(named)
    result.client_states.close()
    return clients


def _scores(
    name: str, population: Population, weights: list[dict[str, np.ndarray]]
) -> dict[str, float]:
    right = [
        (_output(client.test["x"], own) > 0) == (client.test["y"] == 1)
        for client, own in zip(population, weights, strict=True)
    ]
    accuracy = float(np.concatenate(right).mean())
    return {f"{name}_accuracy": accuracy, f"{name}_solved": float(accuracy == 1.0)}


def _part(x: np.ndarray, own: Mapping[str, np.ndarray], part: str) -> np.ndarray:
    """tanh or sigmoid of a gated unit's half, [n, 1]."""
    value = x @ own[f"{part}/kernel"] + own[f"{part}/bias"] + own[f"v_{part}"]
    return np.tanh(value) if part == "filter" else 1 / (1 + np.exp(-value))


def _output(x: np.ndarray, own: Mapping[str, np.ndarray]) -> np.ndarray:
    """The logit of class 1 minus that of class 0, [n]."""
    if "v_filter" in own:
        hidden = _part(x, own, "filter") * _part(x, own, "gate")
    else:
        hidden = np.maximum(x @ own["kernel"] + own["bias"], 0)
    logits = hidden @ own["output/kernel"] + own["output/bias"]
    return logits[:, 1] - logits[:, 0]


def _by_half(
    points: np.ndarray, weights: list[dict[str, np.ndarray]], part: str | None = None
) -> np.ndarray:
    """Values at the points, of the client in whose half each lies."""
    up, down = (
        _output(points, own) if part is None else _part(points, own, part)[:, 0] for own in weights
    )
    return np.where(points[:, 1] > 0, up, down)
