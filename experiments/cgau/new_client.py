"""A client that joins after training, with CGAU: before and after it fits its conditioning.

python -m experiments.cgau.new_client --scale=quick --data_dir=DIR --output_dir=out

Not in the paper, which says of the conditioning that it can be kept at the client: then a client
that was never there begins without, and can learn its own from the few examples it has.
"""

import dataclasses
import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from experiments.cgau import settings
from experiments.run import processes, setup
from experiments.run.config import RunConfig
from experiments.study import program
from experiments.study.experiment import Call, Cell, Experiment, Form, Grid, Position, Scale
from experiments.study.measures import metric
from tff_het import seeding
from tff_het.evaluation.new_client import NewClient
from tff_het.simulation import cohorts, loop

_CELL = "new client"
_SHOTS = (16, 64, 256)
_STEPS = 50
_FORM = Form(digits=4)


def new_client(
    *, seed: int, folder: Path, data_dir: str | None, flags: Mapping[str, str]
) -> dict[str, float]:
    """Trains without one client, which then joins.

    Args:
      seed: Of all; the client left out is number `seed` of those with enough examples, in turn.
      folder: Not used.
      data_dir: The folder of data sets.
      flags: Of the runs, without method.

    Returns:
      Accuracy on that client's test examples: of FedAvg without gates; of CGAU with zero
      conditioning; and after fitting the conditioning alone on some of its training examples.
    """
    del folder
    values = {**flags, "seed": str(seed), "method": "cgau,fed_avg"}
    values |= {} if data_dir is None else {"data_dir": data_dir}
    made = setup.make(RunConfig.of(**values))
    built = processes.build(made)
    able = [
        k
        for k, client in enumerate(made.population)
        if len(client.test["y"]) and len(client.train["y"]) >= max(_SHOTS)
    ]
    if not able:
        raise ValueError(f"No client has test examples and {max(_SHOTS)} to train on.")
    joins = able[seed % len(able)]
    others = [k for k in range(len(made.population)) if k != joins]
    client = made.population[joins]
    course = dataclasses.replace(made.settings, eval_every=made.settings.rounds)

    found: dict[str, float] = {}
    for name, process in built.items():
        result = loop.train(process, made.population, cohorts.always(*others), course)
        result.client_states.close()
        weights, start = result.state.weights, process.init_state(joins, seed, result.state)

        def accuracy(state, process=process, weights=weights) -> float:
            outputs = process.predict(weights, state, client.test, client=joins)
            return float(np.mean(outputs["logits"].argmax(axis=-1) == client.test["y"]))

        found[f"{name}_before"] = accuracy(start)
        if name == "cgau":
            training = dataclasses.replace(made.training, steps=_STEPS, at_most_one_pass=False)
            joining = NewClient(process, training)
            order = seeding.generator(seed, seeding.EVALUATION).permutation(len(client.train["y"]))
            for shots in _SHOTS:
                few = {key: column[order[:shots]] for key, column in client.train.items()}
                draw = seeding.stateless_seed(seed, seeding.EVALUATION, joins, shots)
                _, fitted = joining.fit(weights, start, few, seed=draw, client=joins)
                found[f"cgau_{shots}"] = accuracy(fitted)
    return found


def _scale(flags: Mapping[str, str], num_seeds: int, seconds: float, note: str) -> Scale:
    call = Call(new_client, {"flags": {**flags, "shuffle_fraction": "0.0"}}, (flags["dataset"],))
    return Scale((Cell(_CELL, call, seconds),), num_seeds, note)


_CIFAR = {
    **settings.COMMON,
    "dataset": "cifar10_embeddings",
    "model": "mlp_two_layers_128",
    "client_learning_rate": "0.01",
}
_ROWS = {
    "fed_avg_before": "Baseline (ReLU), as it is",
    "cgau_before": "CGAU, zero conditioning",
    **{f"cgau_{n}": f"CGAU, conditioning fitted on {n} examples" for n in _SHOTS},
}

EXPERIMENT = Experiment(
    paper="cgau",
    name="new_client",
    title="A client that joins after training",
    settings="This is not in the paper. Clients as in Figure 2b, without shuffling and without a "
    "validation part; one of them is left out of training. After the last round its conditioning "
    f"alone is fitted, in {_STEPS} steps of the same SGD on some of its training examples.",
    scales={
        "smoke": _scale(settings.SMOKE, 1, 10.0, "Only to see that it runs: digits, 3 clients."),
        "quick": _scale(
            {**_CIFAR, "rounds": "200"},
            5,
            40.0,
            "200 rounds; 5 seeds, one client left out in each.",
        ),
        "paper": _scale(
            {**_CIFAR, "rounds": "500"},
            30,
            80.0,
            "500 rounds; 30 seeds, one client left out in each.",
        ),
    },
    grids=(
        Grid(
            "Accuracy on the new client's test examples",
            tuple(
                position
                for name, row in _ROWS.items()
                for position in (
                    Position(row, "Accuracy", metric(_CELL, name), _FORM),
                    Position(
                        row,
                        "More than with zero conditioning",
                        metric(_CELL, name) - metric(_CELL, "cgau_before"),
                        _FORM,
                    ),
                )
            ),
        ),
    ),
)


if __name__ == "__main__":
    sys.exit(program.main(EXPERIMENT, __doc__))
