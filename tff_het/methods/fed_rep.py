"""FedRep: clients fit their heads to the shared representation first, and then the representation.

L. Collins, H. Hassani, A. Mokhtari, S. Shakkottai: Exploiting Shared Representations for
Personalized Federated Learning (2021), Algorithm 1 as in the authors' experiments.

| paper (Algorithm 1)            | here                                                      |
|--------------------------------|-----------------------------------------------------------|
| phi^t                          | the model's global variables                              |
| h_i^t                          | its local variables: the last layer, or others            |
| tau_h steps of GRD on h_i      | `head_epochs` passes with phi fixed                       |
| tau_b steps of GRD on phi      | `body_epochs` passes with h_i fixed                       |
| 1 / (rn) sum phi_i             | the mean, which the authors' code weights by examples     |
"""

import dataclasses
from collections.abc import Sequence

import tensorflow as tf

from tff_het.kinds import Whole
from tff_het.learning.composer import AggregationFactory, compose
from tff_het.learning.local_training import LocalTraining
from tff_het.learning.process import FederatedProcess
from tff_het.learning.server_step import apply_update
from tff_het.learning.steps import fit, is_global, is_local
from tff_het.learning.works import local_sgd, sends_change
from tff_het.models.architectures import Architecture
from tff_het.models.model import Variables


def build_fed_rep(
    architecture: Architecture,
    training: LocalTraining,
    *,
    seed: int,
    local_layers: Sequence[str] | None = None,
    head_epochs: Whole = 10,
    body_epochs: Whole = 1,
    aggregator: AggregationFactory | None = None,
    server_optimizer=None,
) -> FederatedProcess:
    """Builds FedRep: heads are fitted to the shared representation first.

    Args:
      architecture: The network.
      training: Settings of the clients' SGD; its epochs or steps are replaced by those below.
      seed: The initial weights follow from it.
      local_layers: Names of the head's layers; the architecture's classifier by default.
      head_epochs: tau_h, passes over the examples for the head.
      body_epochs: tau_b, passes for the representation.
      aggregator: The mean weighted by examples by default.
      server_optimizer: Any of `tff.learning.optimizers`; SGD at rate 1 by default.

    Raises:
      ValueError: If examples are to be acquired.
    """
    model = architecture.model(local=architecture.head if local_layers is None else local_layers)

    def train(download, examples, client, seed, state):
        def trained(variables, epochs, number, trains):
            settings = dataclasses.replace(
                training, epochs=epochs, steps=None, at_most_one_pass=False
            )
            own = tf.random.experimental.stateless_fold_in(seed, number)
            return fit(
                model, settings, variables, examples, client, own, download.round, trains=trains
            )

        before = Variables(download.weights, state.model)
        fitted, _ = trained(before, head_epochs, 0, is_local)
        after, metrics = trained(fitted, body_epochs, 1, is_global)
        return sends_change(before, after, metrics, state)

    return compose(
        model,
        local_sgd(model, training)._replace(train=train),
        seed=seed,
        aggregator=aggregator,
        server_step=apply_update(model, server_optimizer),
    )
