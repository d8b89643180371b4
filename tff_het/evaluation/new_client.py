"""Clients that were not there while the global variables were trained."""

import functools
from collections.abc import Mapping, Sequence

import numpy as np
import tensorflow as tf

from tff_het.learning.client_work import ClientState
from tff_het.learning.local_training import LocalTraining
from tff_het.learning.process import FederatedProcess
from tff_het.learning.steps import fit, is_any, is_local
from tff_het.models.model import ClientContext, Variables, Weights


class NewClient:
    """Fits what is local to a client that joins, on the examples it has (a few will do).

    With CGAU that is the conditioning alone, which starts at zero; with LG-FedAvg the local layers
    (Liang et al. 2019, §4.3).
    """

    def __init__(
        self, process: FederatedProcess, training: LocalTraining, *, fixed_global: bool = True
    ):
        """Initialises it; the fitting is compiled at the first call.

        Args:
          process: The process that the global variables come from.
          training: Settings of the client's SGD; a schedule of the learning rate begins at 0.
          fixed_global: Whether the global variables stay as they are; otherwise the
            client fine-tunes a copy of its own.

        Raises:
          ValueError: If nothing would be trained.
        """
        if fixed_global and not any(spec.local and spec.trainable for spec in process.model.specs):
            raise ValueError(
                "No variable of the model is local, so there is nothing to fit: pass "
                "fixed_global=False to fine-tune a copy of all of them."
            )
        self._process = process
        self._fixed_global = fixed_global
        self._fit = tf.function(functools.partial(self._steps, training), autograph=False)

    def fit(
        self,
        weights: Weights,
        state: ClientState,
        examples: Mapping[str, np.ndarray],
        *,
        seed: Sequence[int] | np.ndarray,
        client: int = 0,
    ) -> tuple[Weights, ClientState]:
        """Returns the client's global variables and state after training.

        Args:
          weights: The global variables.
          state: The client's, such as `FederatedProcess.init_state` gives.
          examples: What it trains on, columns [n, ...], n > 0.
          seed: int32 [2], for the order of examples and dropout.
          client: The client's index.

        Raises:
          ValueError: If there are no examples.
        """
        if not len(examples["y"]):
            raise ValueError("A client needs at least one example to train on, found 0.")
        columns = {
            name: tf.convert_to_tensor(examples[name], spec.dtype)
            for name, spec in self._process.model.example_spec.items()
        }
        variables = tf.nest.map_structure(tf.convert_to_tensor, Variables(weights, state.model))
        after = self._fit(
            variables,
            columns,
            tf.constant(client, tf.int32),
            tf.convert_to_tensor(state.rounds, tf.int32),
            tf.constant(seed, tf.int32),
        )
        fitted = tf.nest.map_structure(lambda v: v.numpy(), after)
        rounds = np.int32(state.rounds + 1)
        # Fixed are moving statistics too, which a call in training gives anew.
        own = weights if self._fixed_global else fitted.global_weights
        return own, state._replace(model=fitted.local_weights, rounds=rounds)

    def _steps(self, training, variables, examples, client, rounds, seed) -> Variables:
        context = ClientContext(client, tf.shape(examples["y"])[0], rounds)
        round_num = tf.zeros([], tf.int32)
        model, trains = self._process.model, is_local if self._fixed_global else is_any
        after, _ = fit(
            model, training, variables, examples, context, seed, round_num, trains=trains
        )
        return after
