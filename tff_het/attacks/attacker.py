"""What an attacker makes of an observation: a whole model, whose missing part he makes up.

| part of the model   | where he has it from                                                      |
|---------------------|---------------------------------------------------------------------------|
| network, settings   | known: all participants know them                                         |
| global variables    | observed (`observation.observe`)                                          |
| local variables     | `FITTED`: trained on data of his own, the observed variables staying fixed |
|                     | `INITIAL`: what every client starts from                                  |
|                     | `PRIVATE`: the client's own, of an attacker who got hold of them           |

His own data come from the victims' distribution and are none of theirs. Of `FITTED` and `INITIAL`
the first is the stronger one, since a local part that was never trained beside the observed one
predicts badly. Where a model has no local variables, all three are the same.
"""

import dataclasses
from collections.abc import Mapping

import numpy as np
import tensorflow as tf

from tff_het import seeding
from tff_het.attacks.observation import Observation
from tff_het.evaluation.judging import logits_of
from tff_het.evaluation.new_client import NewClient
from tff_het.learning.client_work import ClientState
from tff_het.learning.local_training import LocalTraining
from tff_het.learning.process import FederatedProcess, ServerState
from tff_het.models.model import Weights

FITTED, INITIAL, PRIVATE = "fitted", "initial", "private"
LOCAL_PARTS = (FITTED, INITIAL, PRIVATE)

Examples = Mapping[str, np.ndarray]


@dataclasses.dataclass(frozen=True, eq=False)
class Reconstructed:
    """A client's model as an attacker has it.

    Attributes:
      client: The client's index.
      weights: Its global variables.
      state: The local ones that the attacker uses.
    """

    client: int
    weights: Weights
    state: ClientState


class Attacker:
    """Makes models of observations, and asks them.

    Attributes:
      process: The process that is attacked.
      local: Where local variables come from.
    """

    def __init__(
        self,
        process: FederatedProcess,
        server_state: ServerState,
        *,
        own_examples: Examples,
        training: LocalTraining,
        seed: int,
        local: str = FITTED,
    ):
        """Initialises an attacker.

        Args:
          process: The process that is attacked.
          server_state: A server state of it, of any round: off it is read what clients' local
            variables start from, which training leaves as it is.
          own_examples: The attacker's, columns [n, ...], n > 0, of no victim.
          training: How he fits local variables.
          seed: Of his own draws.
          local: One of `LOCAL_PARTS`: where local variables come from.

        Raises:
          ValueError: If there is no such choice, or he has nothing to fit them on.
        """
        if local not in LOCAL_PARTS:
            raise ValueError(f"local must be one of {', '.join(LOCAL_PARTS)}; found {local!r}.")
        self.process = process
        self._server_state = server_state
        self._own_examples = own_examples
        self._seed = seed
        self.local = local
        self._fitting = None
        if local == FITTED and any(s.local and s.trainable for s in process.model.specs):
            if not len(own_examples["y"]):
                raise ValueError(
                    "Local variables are fitted on examples of the attacker's own, found 0."
                )
            self._fitting = NewClient(process, training)

    def reconstruct(self, seen: Observation) -> Reconstructed:
        """Returns the observed client's model.

        Raises:
          ValueError: If the private part is to be used and was not handed over.
        """
        if self.local == PRIVATE:
            if seen.private is None:
                raise ValueError("Private part not seen: ask for it by observe(private=True).")
            local = any(spec.local and spec.trainable for spec in self.process.model.specs)
            if local or not tf.nest.flatten(seen.private.work):
                return Reconstructed(seen.client, seen.model, seen.private)
            # It keeps a model of its own; what it would fine-tune first, it has just trained.
            observed = self._server_state._replace(weights=seen.model)
            own = self.process.adapt(observed, seen.private, self._own_examples, client=seen.client)
            return Reconstructed(seen.client, *own)
        state = self.process.init_state(seen.client, self._seed, self._server_state)
        if self._fitting is not None:
            state = self._fitting.fit(
                seen.model,
                state,
                self._own_examples,
                # The same for all: not the client, but what it sent makes the difference.
                seed=seeding.stateless_seed(self._seed, seeding.ATTACK),
                client=seen.client,
            )
        return Reconstructed(seen.client, seen.model, state)

    def logits(self, model: Reconstructed, examples: Examples) -> np.ndarray:
        """Returns a reconstructed model's logits, float64 [n, classes]; see `judging.logits_of`."""
        return logits_of(self.process, model.weights, model.state, examples, model.client)
