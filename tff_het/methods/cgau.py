"""Client adaptation: gated layers, shifted by vectors that each client learns for itself (CGAU).

L. Rieger, R. Høegh, L. K. Hansen: Client Adaptation improves Federated Learning with Simulated
Non-IID Clients (2020).

| paper, eq. (1) | here                                                                      |
|----------------|---------------------------------------------------------------------------|
| W_f, W_g       | `filter` and `gate` of every hidden layer: global variables               |
| V_f, V_g       | their conditioning: [units] at each client, or a row [units] of [K, units] |
| h              | the client's index                                                        |
| K, N           | `num_clients`; the width of the layer                                     |

Three variants. `private`: "this conditioning can simply be maintained locally" (§3.2), as local
variables that no one else sees. `shared_one_hot`: the client is an input, and V_f, V_g are averaged
like all other weights. Then client k's row is changed by k alone (without weight decay), but by
n_k/n of its local change only, and everyone receives everybody's rows. In both, the conditioning
starts at 0 and has no bias beside the layer's own. `as_released`, the authors' code: as
`shared_one_hot`, but V is drawn at random and has a bias, and the output is conditioned too.

In all, clients count by all of their examples; the authors count those seen in the round.
"""

import dataclasses
from typing import Literal

from tff_het.learning.composer import AggregationFactory, compose
from tff_het.learning.local_training import LocalTraining
from tff_het.learning.process import FederatedProcess
from tff_het.learning.server_step import apply_update
from tff_het.learning.works import local_sgd
from tff_het.models.architectures import Architecture
from tff_het.models.gated import GatedLayers, is_conditioning


def build_cgau(
    architecture: Architecture,
    training: LocalTraining,
    *,
    seed: int,
    num_clients: int | None = None,
    variant: Literal["private", "shared_one_hot", "as_released"] = "private",
    condition_output: bool = False,
    aggregator: AggregationFactory | None = None,
    server_optimizer=None,
) -> FederatedProcess:
    """Builds CGAU: gated layers, shifted by vectors that each client learns for itself.

    Args:
      architecture: The network; its hidden layers become gated ones of the same width.
      training: Settings of the clients' local SGD, which trains both parts together.
      num_clients: K; all variants but `private` need it.
      variant: private: clients keep their conditioning; shared_one_hot: it is averaged like all
        weights; as_released: it is averaged, and all else is as in the authors' code, with
        `condition_output`.
      condition_output: Whether the logits are shifted as well, as in the authors' code; the paper
        has no such term.

    Raises:
      ValueError: If the number of clients is missing.
    """
    shared, released = variant != "private", variant == "as_released"
    if shared and num_clients is None:
        raise ValueError(f"{variant} needs num_clients: the network has a row for each.")
    layers = GatedLayers(
        bias=architecture.kind.bias,
        num_clients=num_clients if shared else None,
        output_too=condition_output or released,
        drawn=released,
    )
    gated = dataclasses.replace(architecture, kind=layers)
    model = gated.model(local=() if shared else is_conditioning)
    work = local_sgd(model, training)
    step = apply_update(model, server_optimizer)
    return compose(model, work, seed=seed, aggregator=aggregator, server_step=step)
