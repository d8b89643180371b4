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
start from in each round. What it made of them in its last round stays as its state for evaluation
alone: training does not read it. Before a client is asked it would make its
part again, with the global variables of that moment (`evaluation.new_client`).
"""

from collections.abc import Sequence

import tensorflow as tf

from tff_het.learning.client_work import ClientResult, ClientWork, LocalTraining, sgd_steps
from tff_het.learning.composer import AggregationFactory, compose
from tff_het.learning.process import FederatedProcess
from tff_het.learning.server_step import apply_update
from tff_het.models.architectures import Architecture
from tff_het.models.model import Model, Variables


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
      seed: The initial weights follow from it.
      local_layers: Names of the local layers; the architecture's classifier by default.
      reconstruction: Settings of the SGD on the local variables; as `training` by default.
      aggregator: The mean weighted by examples by default.
      server_optimizer: Any of `tff.learning.optimizers`; SGD at rate 1 by default.
    """
    model = architecture.model(local=architecture.head if local_layers is None else local_layers)
    return compose(
        model,
        _work(model, training, reconstruction or training),
        seed=seed,
        aggregator=aggregator,
        server_step=apply_update(model, server_optimizer),
    )


def _work(model: Model, training: LocalTraining, reconstruction: LocalTraining) -> ClientWork:
    remade, updated = model.training_only(local=True), model.training_only(local=False)

    def train(download, examples, client, client_seed, state) -> ClientResult:
        first, second = tf.unstack(tf.random.experimental.stateless_split(client_seed, 2))
        before = Variables(download.weights, state.work)

        def steps(part: Model, settings: LocalTraining, variables: Variables, part_seed):
            values, metrics = sgd_steps(
                part,
                settings,
                part.split(model.join(variables)),
                examples,
                client,
                part_seed,
                download.round,
            )
            return model.split(part.join(values)), metrics

        reconstructed, _ = steps(remade, reconstruction, before, first)
        after, metrics = steps(updated, training, reconstructed, second)
        return ClientResult(
            update=tf.nest.map_structure(tf.subtract, after.global_weights, before.global_weights),
            weight=tf.cast(client.num_examples, tf.float32),
            metrics=metrics,
            state=state._replace(model=after.local_weights),
        )

    uses_round = training.learning_rate is not None or reconstruction.learning_rate is not None
    return ClientWork(train, initial_work=lambda seed, local: local, uses_round=uses_round)
