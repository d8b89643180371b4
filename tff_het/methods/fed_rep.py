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

from tff_het.kinds import Passes
from tff_het.learning.composer import AggregationFactory, compose
from tff_het.learning.local_training import LocalTraining
from tff_het.learning.process import FederatedProcess
from tff_het.learning.server_step import apply_update
from tff_het.learning.steps import fit, is_global, is_local
from tff_het.learning.works import local_sgd, sends_change
from tff_het.methods import opponents
from tff_het.methods.warning import warn_if
from tff_het.models.architectures import Architecture
from tff_het.models.model import Variables


def build_fed_rep(
    architecture: Architecture,
    training: LocalTraining,
    *,
    seed: int,
    local_layers: Sequence[str] | None = None,
    head_epochs: Passes = 10,
    body_epochs: Passes = 1,
    aggregator: AggregationFactory | None = None,
    server_optimizer=None,
) -> FederatedProcess:
    """Builds FedRep: heads are fitted to the shared representation first.

    Args:
      architecture: The network.
      training: Settings of the clients' SGD; its epochs or steps are replaced by those below.
      local_layers: Names of the head's layers; the architecture's classifier by default.
      head_epochs: tau_h, passes over the examples for the head, instead of local epochs or steps.
      body_epochs: tau_b, passes for the representation, after the head's.

    Raises:
      ValueError: If examples are to be acquired, an adversary is to make several steps for each of
        the network, or neither part is trained.
    """
    opponents.refuse_steps(training, "fed_rep")
    if not head_epochs and not body_epochs:
        raise ValueError("fed_rep trains the head or the body; found 0 epochs of both.")
    warn_if(not head_epochs, "fed_rep with head_epochs 0 leaves the heads as they begin: random.")
    warn_if(not body_epochs, "fed_rep with body_epochs 0 trains heads on a body that stays random.")
    model = architecture.model(local=architecture.head if local_layers is None else local_layers)

    def train(download, examples, client, seed, state):
        before = after = Variables(download.weights, state.model)
        metrics = None
        for number, epochs, trains in ((0, head_epochs, is_local), (1, body_epochs, is_global)):
            if epochs:
                settings = dataclasses.replace(
                    training, epochs=epochs, steps=None, at_most_one_pass=False
                )
                own = (examples, client, tf.random.experimental.stateless_fold_in(seed, number))
                after, metrics = fit(model, settings, after, *own, download.round, trains=trains)
        return sends_change(before, after, metrics, state)

    return compose(
        model,
        local_sgd(model, training)._replace(train=train),
        seed=seed,
        aggregator=aggregator,
        server_step=apply_update(model, server_optimizer),
    )
