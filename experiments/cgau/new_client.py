"""Not in the paper: a client that joins after training, before and after fitting."""

import dataclasses
from typing import Any

import numpy as np

import experiments.study as s
from experiments.cgau import settings
from experiments.cgau.settings import Flags
from experiments.run import processes, setup
from tff_het import seeding
from tff_het.evaluation.new_client import NewClient
from tff_het.simulation import cohorts, loop

_SHOTS = (16, 64, 256)


def new_client(*, seed: int, data_dir: str | None, flags: Flags, **_: Any) -> dict[str, float]:
    """Trains without one client, which then joins: number `seed`, in turn, of those large enough.

    Gives the accuracy on that client's test examples: of FedAvg without gates, of CGAU with zero
    conditioning, and after fitting the conditioning alone on some of its training examples.
    """
    made = setup.of_flags(flags, seed=seed, data_dir=data_dir, method="cgau,fed_avg")
    sizes = [(len(client.test["y"]), len(client.train["y"])) for client in made.population]
    able = [k for k, (test, train) in enumerate(sizes) if test and train >= max(_SHOTS)]
    if not able:
        raise ValueError(f"No client has test examples and {max(_SHOTS)} to train on.")
    joins = able[seed % len(able)]
    client = made.population[joins]
    others = [k for k in range(len(made.population)) if k != joins]
    course = dataclasses.replace(made.settings, eval_every=made.settings.rounds)
    training = dataclasses.replace(made.training, steps=50, at_most_one_pass=False)
    order = seeding.generator(seed, seeding.EVALUATION).permutation(len(client.train["y"]))
    found = {}
    for name, process in processes.build(made).items():
        result = loop.train(process, made.population, cohorts.always(*others), course)
        result.client_states.close()
        weights, start = result.state.weights, process.init_state(joins, seed, result.state)
        states = {"before": start}
        if name == "cgau":
            joining = NewClient(process, training)
            for shots in _SHOTS:
                few = {key: column[order[:shots]] for key, column in client.train.items()}
                draw = seeding.stateless_seed(seed, seeding.EVALUATION, joins, shots)
                states[str(shots)] = joining.fit(weights, start, few, seed=draw, client=joins)
        for label, state in states.items():
            outputs = process.predict(weights, state, client.test, client=joins)
            right = outputs["logits"].argmax(axis=-1) == client.test["y"]
            found[f"{name}_{label}"] = float(np.mean(right))
    return found


def _scale(flags: Flags, num_seeds: int, note: str) -> s.Scale:
    clustered = {**flags, "shuffle_fraction": "0.0"}
    cell = s.call("new client", new_client, flags["dataset"], flags=clustered, scales_with="rounds")
    return s.Scale([cell], num_seeds, f"{note} One client is left out with each seed.")


_FITTED = {f"CGAU, conditioning fitted on {n} examples": f"cgau_{n}" for n in _SHOTS}
_NAMES = {"Baseline (ReLU), as it is": "fed_avg_before", "CGAU, zero conditioning": "cgau_before"}
_OF = {row: s.metric("new client", name) for row, name in {**_NAMES, **_FITTED}.items()}
_ZERO = _OF["CGAU, zero conditioning"]

EXPERIMENT = s.Experiment(
    "cgau.new_client",
    "Not in the paper: a client that joins after training",
    scales={
        "smoke": _scale(settings.SMOKE, 1, settings.SMOKE_NOTE),
        "quick": _scale({**settings.CIFAR, "rounds": "200"}, 5, "200 rounds."),
        "paper": _scale({**settings.CIFAR, "rounds": "500"}, 30, "500 rounds."),
    },
    tables=[
        s.table(
            "Accuracy on the new client's test examples",
            _OF,
            {"Accuracy": False, "Gain over zero conditioning": True},
            lambda accuracy, compared: accuracy - _ZERO if compared else accuracy,
            s.Form(digits=4),
        )
    ],
)
