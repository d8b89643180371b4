"""XOR with two clients (Appendix A of CGAU), for Figure 3."""

from pathlib import Path
from typing import Any

import numpy as np

from tff_het import methods, seeding
from tff_het.backend.names import tff
from tff_het.clients import Client, Population
from tff_het.learning.local_training import LocalTraining
from tff_het.models import architectures, networks
from tff_het.models.model import Variables
from tff_het.simulation import cohorts, loop

FILE = "panels.npz"
GRID = np.linspace(-2, 2, 81)
NETWORKS: dict[str, dict[str, Any]] = {
    "mlp": {"method": "fed_avg", "units": 2},
    "cgau": {"method": "cgau", "units": 1},
    "cgau_shared": {"method": "cgau", "units": 1, "variant": "shared_one_hot", "num_clients": 2},
}
# CGAU without the conditioning of a part of its unit.
_ABLATIONS = {"without_modulation": "filter", "without_expression": "gate"}
_EXAMPLES, _SPREAD = 200, 0.2  # Of a client in training, and as many in its test.
_Arrays = dict[str, np.ndarray]


def solve(*, seed: int, folder: Path, rounds: int, steps: int, **_: Any) -> dict[str, float]:
    """Trains all networks on XOR with an "up" and a "down" client; keeps panels on a grid.

    Gives the test accuracy of each network and ablation, of both clients together, whether it is 1
    ("solved"), and by how much it is higher for the "up" client ("lead").
    """
    population = Population([_client("up", 1, seed), _client("down", -1, seed)])
    course = loop.Settings(rounds=rounds, seed=seed, eval_every=rounds)
    models = {name: _train(population, course, steps, **how) for name, how in NETWORKS.items()}
    for ablation, part in _ABLATIONS.items():
        models[ablation] = models["cgau"] | {f"{part}_conditioning": np.zeros((2, 1))}
    points = np.stack(np.meshgrid(GRID, GRID), axis=-1).reshape(-1, 2)  # [g, 2]
    x, y = (np.concatenate([client.test[column] for client in population]) for column in "xy")
    panels, found = {"x": x, "y": y}, dict[str, float]()
    for name, weights in models.items():
        right = (_outputs(x, weights)["logits"] > 0) == (y == 1)
        found |= {f"{name}_accuracy": float(right.mean()), f"{name}_solved": float(right.all())}
        up, down = np.split(right, 2)
        found[f"{name}_lead"] = float(up.mean() - down.mean())
        panels |= {f"{name}_{part}": z for part, z in _outputs(points, weights).items()}
    np.savez_compressed(folder / FILE, **panels)
    return found


def _client(name: str, side: int, seed: int) -> Client:
    """A client's points: one cluster of each class, both on its side of x_2 = 0."""
    rng = seeding.generator(seed, seeding.DATA, int(side > 0))

    def draw() -> _Arrays:
        x_1 = rng.permutation(np.repeat([-1.0, 1.0], _EXAMPLES // 2))
        x = rng.normal(np.stack([x_1, np.full(_EXAMPLES, side)], axis=1), _SPREAD)
        x[:, 1] = side * np.abs(x[:, 1])
        # Opposite signs are the positive class.
        return {"x": x.astype(np.float32), "y": (x_1 * side < 0).astype(np.int32)}

    train, test = draw(), draw()
    return Client(name, train, {k: v[:0] for k, v in train.items()}, test)


def _train(
    clients: Population, course: loop.Settings, steps: int, method: str, units: int, **options: Any
) -> _Arrays:
    """Returns weights by name; conditioning has a row for each client."""
    network = networks.mlp([units])
    architecture = architectures.make("xor", clients.element_spec, 2, network=network)
    optimizer = tff.learning.optimizers.build_sgdm(0.1, momentum=0.9)
    training = LocalTraining(optimizer, batch_size=32, steps=steps)
    process = methods.build(method, architecture, training, seed=course.seed, **options)
    result = loop.train(process, clients, cohorts.always(0, 1), course)
    states = [result.client_states.get(client, result.state) for client in range(len(clients))]
    result.client_states.close()
    own = [process.model.join(Variables(result.state.weights, state.model)) for state in states]
    return {
        spec.path.removeprefix("dense_1/"): np.stack(values) if spec.local else np.array(values[0])
        for spec, *values in zip(process.model.specs, *own, strict=True)
    }


def _outputs(x: np.ndarray, weights: _Arrays) -> _Arrays:
    """Returns outputs at points [n, 2], of the client in whose half each lies.

    These are the logit of class 1 minus that of class 0, and a gated unit's parts, each [n].
    """
    client = np.where(x[:, 1] > 0, 0, 1)
    parts = {}
    for part, activation in (("filter", np.tanh), ("gate", lambda z: 1 / (1 + np.exp(-z)))):
        if f"{part}/kernel" in weights:
            z = x @ weights[f"{part}/kernel"] + weights[f"{part}/bias"]
            parts[part] = activation(z + weights[f"{part}_conditioning"][client])
    if parts:
        hidden = parts["filter"] * parts["gate"]
    else:
        hidden = np.maximum(x @ weights["kernel"] + weights["bias"], 0)
    logits = hidden @ weights["output/kernel"] + weights["output/bias"]
    return {"logits": logits[:, 1] - logits[:, 0]} | {k: v[:, 0] for k, v in parts.items()}
