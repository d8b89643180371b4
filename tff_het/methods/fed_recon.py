"""Federated reconstruction: local variables are made again in every round, and never kept.

K. Singhal, H. Sidahmed, Z. Garrett, S. Wu, J. Rush, S. Prakash: Federated Reconstruction:
Partially Local Federated Learning (2021); the algorithm of TFF's `build_fed_recon`.

| paper (Algorithm 1)                | here                                                       |
|------------------------------------|---------------------------------------------------|
| g, l_i                             | global and local variables                        |
| R, reconstruction                  | SGD on the local ones from their initial values   |
| U, the update                      | SGD on the global ones, with l_i fixed            |
| support set, query set             | all of the client's examples in both              |

The baseline of methods that keep what is local. A client's `work` state is what its local variables
start from in each round. Before a client predicts it makes its part again, with the global
variables of that moment.
"""

from collections.abc import Sequence

import tensorflow as tf

from tff_het.learning.client_work import ClientResult, ClientState, ClientWork, starts_with_nothing
from tff_het.learning.composer import AggregationFactory, compose
from tff_het.learning.local_training import LocalTraining
from tff_het.learning.process import FederatedProcess
from tff_het.learning.server_step import apply_update
from tff_het.learning.steps import fit, is_global, is_local
from tff_het.learning.works import reads_for, sends_change
from tff_het.methods import opponents
from tff_het.models.architectures import Architecture
from tff_het.models.model import Variables


def build_fed_recon(
    architecture: Architecture,
    training: LocalTraining,
    *,
    seed: int,
    local_layers: Sequence[str] | None = None,
    reconstruction: LocalTraining | None = None,
    aggregator: AggregationFactory | None = None,
    server_optimizer=None,
) -> FederatedProcess:
    """Builds federated reconstruction: clients refit the classifier in every round.

    Args:
      architecture: The network.
      training: Settings of the SGD on the global variables.
      local_layers: Names of the local layers; the architecture's classifier by default.
      reconstruction: Settings of the SGD on the local variables; as `training` by default.

    Raises:
      ValueError: If an adversary is to make several steps for each of the network.
    """
    opponents.refuse_steps(training, "fed_recon")
    model = architecture.model(local=architecture.head if local_layers is None else local_layers)
    reconstruction = reconstruction or training

    def train(download, examples, client, client_seed, state) -> ClientResult:
        first, second = tf.unstack(tf.random.experimental.stateless_split(client_seed, 2))
        before = Variables(download.weights, state.work)
        own = (examples, client)
        remade, _ = fit(model, reconstruction, before, *own, first, download.round, trains=is_local)
        after, metrics = fit(
            model, training, remade, *own, second, download.round, trains=is_global
        )
        return sends_change(before, after, metrics, state)

    def adapt(download, examples, client, seed, state) -> Variables:
        before = Variables(download.weights, state.work)
        own = (examples, client, seed, download.round)
        return fit(model, reconstruction, before, *own, trains=is_local)[0]

    def init(client, seed, server_state) -> ClientState:
        state = starts_with_nothing(client, seed, server_state)
        return state._replace(work=server_state.initial_local)

    work = ClientWork(train, init, reads_for(training, reconstruction), adapt=adapt)
    step = apply_update(model, server_optimizer)
    return compose(model, work, seed=seed, aggregator=aggregator, server_step=step)
