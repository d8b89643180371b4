"""Training of WAFFLe that is followed round by round: what becomes of the clients' posteriors."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from scipy import special

from experiments.run import processes, setup
from tff_het.learning.process import ServerState
from tff_het.models.layers import POSTERIOR_LOGITS
from tff_het.models.model import Variables
from tff_het.simulation import loop, records
from tff_het.simulation.client_states import ClientStates
from tff_het.simulation.evaluating import Evaluation
from tff_het.simulation.start import values_of

ACCURACY = "local_validation_accuracy_mean"
MOVED, USED, SATURATED = "mask_changes", "sum_of_pi", "saturated"
_LOGIT = 6.0  # From here on pi is within 0.0025 of 0 or 1.


def follow(
    *, seed: int, folder: Path, data_dir: str | None, flags: Mapping[str, str]
) -> dict[str, float]:
    """Trains WAFFLe; `metrics.csv` has what the clients of each round make of their posteriors.

    `mask_changes` is the share of a client's factors that its training switches on or off, past
    pi = 1/2; `sum_of_pi` and `saturated`, the share of |logits| > 6, are those after it. Returns
    means over the last ten rounds, and all clients' accuracy on validation examples.
    """
    made = setup.of_flags({**flags, "eval_every": "1"}, seed=seed, data_dir=data_dir)
    (process,) = processes.build(made).values()
    new, last, rows = ClientStates(process, seed), dict[int, np.ndarray](), []

    def logits(client: int, states: ClientStates, state: ServerState) -> np.ndarray:
        own = Variables(state.weights, states.get(client, state).model)
        found = values_of(process.model, own).items()
        return np.concatenate([v for path, v in found if path.endswith(POSTERIOR_LOGITS)])

    def note(done: int, found: Evaluation) -> None:
        clients, state = made.schedule(done - 1), found.state
        before = [last[c] if c in last else logits(c, new, state) for c in clients]
        after = [logits(c, found.states, state) for c in clients]
        last.update(zip(clients, after, strict=True))
        moved = np.mean((np.array(before) > 0) != (np.array(after) > 0))
        used, saturated = special.expit(after).sum(axis=1).mean(), np.mean(np.abs(after) > _LOGIT)
        rows.append([moved, used, saturated])

    trained = loop.train(process, made.population, made.schedule, made.settings, on_evaluation=note)
    assert trained.evaluation is not None
    names = (MOVED, USED, SATURATED)
    table = [["round", *names], *([n, *row] for n, row in enumerate(rows, start=1))]
    records.write_atomically(folder / "metrics.csv", records.as_csv(table))
    mean = map(float, np.mean(rows[-10:], axis=0))
    return {ACCURACY: trained.evaluation.row()[ACCURACY]} | dict(zip(names, mean, strict=True))
