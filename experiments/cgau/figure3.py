"""Figure 3 of CGAU (Appendix A): XOR with two clients, by one gated unit and by two ReLU units.

python -m experiments.cgau.figure3 --scale=quick --output_dir=out
"""

import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import tensorflow_federated as tff
from matplotlib.figure import Figure as Drawing

from experiments.harness import program
from experiments.harness.experiment import (
    PERCENT,
    Call,
    Cell,
    Check,
    Claim,
    Experiment,
    Figure,
    Grid,
    Position,
    Scale,
)
from experiments.harness.measures import Measure, difference, metric
from experiments.harness.store import Results
from tff_het import methods, seeding
from tff_het.clients import Client, Population
from tff_het.learning.client_work import LocalTraining
from tff_het.models import architectures
from tff_het.simulation import cohorts, loop

_CELL, _FILE = "xor", "panels.npz"
_EXAMPLES, _SPREAD = 200, 0.2  # Of a client in training, and as many in its test.
_GRID = np.linspace(-2, 2, 81)
_NETWORKS = {
    "mlp": ("MLP, two ReLU units", "fed_avg", 2, {}),
    "cgau": ("CGAU, one gated unit", "cgau", 1, {}),
    "cgau_shared": (
        "CGAU, one gated unit, conditioning averaged",
        "cgau",
        1,
        {"variant": "shared_one_hot", "num_clients": 2},
    ),
}
_ABLATIONS = {
    "without_modulation": "CGAU without client modulation",
    "without_expression": "CGAU without client expression",
}


def xor(
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
    points = np.stack(np.meshgrid(_GRID, _GRID), axis=-1).reshape(-1, 2)  # [g, 2]
    panels: dict[str, np.ndarray] = {}
    found: dict[str, float] = {}
    for name, (_, method, units, options) in _NETWORKS.items():
        weights = _train(population, method, units, options, seed, rounds, steps)
        found |= _scores(name, population, weights)
        panels |= {f"{name}_logits": _by_half(points, weights)}
        if name == "cgau":
            for part in ("filter", "gate"):
                bare = [{**own, f"v_{part}": np.zeros(1)} for own in weights]
                panels[f"{part}_bare"] = _by_half(points, bare, part)
                panels[part] = _by_half(points, weights, part)
            for ablation, part in zip(_ABLATIONS, ("filter", "gate"), strict=True):
                without = [{**own, f"v_{part}": np.zeros(1)} for own in weights]
                found |= _scores(ablation, population, without)
                panels[f"{ablation}_logits"] = _by_half(points, without)
    np.savez_compressed(
        folder / _FILE,
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
        "xor", population.element_spec, 2, network=architectures.mlp([units])
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


def _draw(results: Results) -> Drawing | None:
    """The panels of the first seed that CGAU solved."""
    runs = [found[_CELL] for seed in results.seeds if (found := results.ok([_CELL], seed))]
    solved = [run for run in runs if run.metric("cgau_solved")]
    if not runs:
        return None
    panels = np.load((solved or runs)[0].files / _FILE)
    titles = {
        "mlp_logits": "(a) MLP",
        "cgau_logits": "(b) CGAU",
        "filter_bare": "(c) filter without conditioning",
        "gate_bare": "(d) gate without conditioning",
        "filter": "(e) filter with conditioning",
        "gate": "(f) gate with conditioning",
        "without_modulation_logits": "(g) CGAU without modulation",
        "without_expression_logits": "(h) CGAU without expression",
    }
    figure = Drawing(figsize=(8, 15), layout="constrained")
    axes = figure.subplots(4, 2, sharex=True, sharey=True)
    shape = (len(_GRID), len(_GRID))
    for ax, (key, title) in zip(axes.flat, titles.items(), strict=True):
        values = panels[key].reshape(shape)
        if key.endswith("logits"):
            # Red is the negative class, as in the paper.
            image = ax.pcolormesh(
                _GRID, _GRID, 1 / (1 + np.exp(-values)), cmap="RdBu", vmin=0, vmax=1
            )
        else:
            low = -1 if key.startswith("filter") else 0
            image = ax.pcolormesh(_GRID, _GRID, values, cmap="viridis", vmin=low, vmax=1)
        figure.colorbar(image, ax=ax)
        for label, color in ((0, "darkred"), (1, "navy")):
            x = panels["x"][panels["y"] == label]
            ax.scatter(x[:, 0], x[:, 1], s=4, c=color, edgecolors="white", linewidths=0.2)
        ax.axhline(0, color="black", linewidth=0.8)
        ax.set(title=title, xlabel="$x_1$", ylabel="$x_2$")
    return figure


def _solved(name: str) -> Measure:
    return metric(_CELL, f"{name}_solved")


def _scale(rounds: int, steps: int, num_seeds: int, seconds: float, note: str) -> Scale:
    arguments = {"rounds": rounds, "steps": steps}
    return Scale((Cell(_CELL, Call(xor, arguments), seconds),), num_seeds, note)


_TITLES = {name: title for name, (title, *_) in _NETWORKS.items()} | _ABLATIONS

EXPERIMENT = Experiment(
    paper="cgau",
    name="figure3",
    title="Figure 3: XOR with two clients",
    settings="Two classes, two features: the negative class has features of the same sign, the "
    'positive one of opposite signs. The "up" client has only points with positive x_2, the "down" '
    "client only those with negative. Nothing else is printed; ours: 200 training points a client, "
    "clusters at (+-1, +-1) with standard deviation 0.2, all clients in each round, SGD at rate "
    "0.1 with momentum 0.9, batches of 32.",
    scales={
        "smoke": _scale(2, 2, 1, 6.0, "Only to see that it runs: two rounds of two steps."),
        "quick": _scale(150, 10, 20, 12.0, "150 rounds of 10 steps, 20 seeds."),
        "paper": _scale(150, 10, 100, 12.0, "As quick, with 100 seeds: the paper prints none."),
    },
    grids=(
        Grid(
            "All seeds",
            tuple(
                Position(title, column, metric(_CELL, f"{name}_{key}"))
                for name, title in _TITLES.items()
                for column, key in (("Accuracy, %", "accuracy"), ("Seeds solved, %", "solved"))
            ),
        ),
    ),
    claims=(
        Claim(
            "One gated unit with conditioning solves XOR (every test point right), from most "
            "seeds.",
            (Check("share of seeds solved by CGAU", _solved("cgau"), 0.5),),
        ),
        Claim(
            "It does so from more seeds than an MLP of two ReLU units.",
            (Check("CGAU - MLP", difference(_solved("cgau"), _solved("mlp"))),),
        ),
        Claim(
            "It needs both kinds of conditioning.",
            tuple(
                Check(
                    f"accuracy of CGAU - {title}",
                    difference(metric(_CELL, "cgau_accuracy"), metric(_CELL, f"{name}_accuracy")),
                    form=PERCENT,
                )
                for name, title in _ABLATIONS.items()
            ),
        ),
    ),
    figures=(
        Figure(
            "Decision boundaries and activations, of the first seed that CGAU solves",
            "Two classes in the four quadrants. (a) The MLP's boundaries are two parallel lines "
            "(b) CGAU's differ between the two halves. (c) The filter has learnt a split on the "
            "sign of x_1; (d) the gate shuts off negative x_1. (e) Modulation moves the filter of "
            "the up client towards positive x_1; (f) expression moves the gate of the down client "
            "towards negative x_1. (g), (h) Without either, one client's half is wrong.",
            _draw,
        ),
    ),
    notes=(
        "Red is the negative class. Each half of a panel is the model of the client that lives "
        "there. Which client is served by modulation and which by expression differs from seed to "
        "seed, as do the signs.",
    ),
)


if __name__ == "__main__":
    sys.exit(program.main(EXPERIMENT, __doc__))
