"""Clients that were not there while the global variables were trained."""

import functools
from collections.abc import Mapping, Sequence

import numpy as np
import tensorflow as tf

from tff_het.learning import example_files
from tff_het.learning.client_work import ClientState
from tff_het.learning.local_training import LocalTraining
from tff_het.learning.process import FederatedProcess
from tff_het.learning.steps import fit, is_local
from tff_het.models.model import ClientContext, Variables, Weights


class NewClient:
    """Fits what is local to a client that joins, on the examples it has (a few will do).

    With CGAU that is the conditioning alone, which starts at zero; with LG-FedAvg the local layers
    (Liang et al. 2019, §4.3).
    """

    def __init__(self, process: FederatedProcess, training: LocalTraining):
        """Initialises it; the fitting is compiled at the first call.

        Args:
          process: The process that the global variables come from, which stay as they are.
          training: Settings of the client's SGD; a schedule of the learning rate begins at 0.

        Raises:
          ValueError: If nothing would be trained.
        """
        if not any(spec.local and spec.trainable for spec in process.model.specs):
            raise ValueError("No variable of the model is local, so there is nothing to fit.")
        self._process = process
        self._fit = tf.function(functools.partial(self._steps, training), autograph=False)

    def fit(
        self,
        weights: Weights,
        state: ClientState,
        examples: Mapping[str, np.ndarray],
        *,
        seed: Sequence[int] | np.ndarray,
        client: int = 0,
    ) -> ClientState:
        """Returns the client's state after training.

        Args:
          weights: The global variables.
          state: The client's, such as `FederatedProcess.init_state` gives.
          examples: What it trains on, columns [n, ...], n > 0.
          seed: int32 [2], for the order of examples and dropout.
          client: The client's index.

        Raises:
          ValueError: If there are no examples, or columns do not fit the model's `example_spec`.
        """
        columns = example_files.checked(examples, self._process.model.example_spec)
        if not len(columns["y"]):
            raise ValueError("A client needs at least one example to train on, found 0.")
        after = self._fit(
            tf.nest.map_structure(tf.convert_to_tensor, Variables(weights, state.model)),
            tf.nest.map_structure(tf.convert_to_tensor, dict(columns)),
            tf.constant(client, tf.int32),
            tf.convert_to_tensor(state.rounds, tf.int32),
            tf.constant(seed, tf.int32),
        )
        model = tf.nest.map_structure(lambda v: v.numpy(), after.local_weights)
        return state._replace(model=model, rounds=np.int32(state.rounds + 1))

    def _steps(self, training, variables, examples, client, rounds, seed) -> Variables:
        context = ClientContext(client, tf.shape(examples["y"])[0], rounds)
        of = (self._process.model, training, variables, examples, context, seed)
        return fit(*of, tf.zeros([], tf.int32), trains=is_local)[0]
