"""WAFFLe: every client chooses from a shared dictionary of rank-1 weight factors.

W. Hao, N. Mehta, K. J. Liang, P. Cheng, M. El-Khamy, L. Carin: WAFFLe: Weight Anonymized
Factorization for Federated Learning (2020), Algorithm 1.

| paper                         | here                                                         |
|-------------------------------|--------------------------------------------------------------|
| W_a [J, F], W_b [F, M], r [F] | `left`, `right`, `strength` of a layer: global variables     |
| pi_i, c_i, d_i [F]            | `posterior_logits`, `_c`, `_d` (their sigmoid, softplus): local |
| F of each layer               | `factors`; layers without any are global as they are         |
| alpha                         | `alpha_over_factors` * F                                     |
| R / n_i, of eq. (12)          | the layers' KL terms, beside the mean loss of a batch; n_i is |
|                               | the client's number of examples                               |
| line 10, "simple averaging"   | `equally_weighted`                                           |
| a cached copy, section 2.3    | `keep_globals`: what the client had after its last training  |

Algorithm 1 "minimises" eq. (12), which is a lower bound; here its negative is minimised. The paper
prints neither the temperature of the relaxed Bernoulli nor where posteriors start: here at the
prior, c = alpha, d = 1 and pi_k = E[v_1 ... v_k], the same for all clients. Nor does it say what
SGD learns pi by. With the logits' own gradient clients hardly come to differ, the weights being so
much faster; hence `posterior_rate`.
"""

import dataclasses
from collections.abc import Mapping
from typing import Literal

from tff_het.kinds import Count, Positive, Whole
from tff_het.learning.composer import AggregationFactory, compose
from tff_het.learning.descent import is_sgd
from tff_het.learning.local_training import LocalTraining
from tff_het.learning.process import FederatedProcess
from tff_het.learning.server_step import apply_update
from tff_het.learning.works import equally_weighted, keeping_globals, local_sgd
from tff_het.models.architectures import Architecture
from tff_het.models.factorized import FactorizedLayers, is_posterior
from tff_het.models.sampling import averaging_samples


def build_waffle(
    architecture: Architecture,
    training: LocalTraining,
    *,
    seed: int,
    factors: Mapping[str, Whole] | None = None,
    alpha_over_factors: Positive = 1.0,
    temperature: Positive = 2 / 3,
    posterior_rate: Positive = 1e5,
    posterior_rule: Literal["logits", "natural", "probabilities"] = "logits",
    evaluation_samples: Count = 0,
    keep_globals: bool = False,
    aggregator: AggregationFactory | None = None,
    server_optimizer=None,
) -> FederatedProcess:
    """Builds WAFFLe: every client chooses from a shared dictionary of rank-1 weight factors.

    Args:
      architecture: The network.
      training: Settings of the clients' local SGD (Bayes by Backprop), which trains the dictionary
        and the posterior together.
      factors: F of each dense or convolutional layer that is factorised, by name; by default all
        hidden ones are, with as many factors as they have outputs.
      alpha_over_factors: alpha / F, positive: the larger, the more factors are active.
      temperature: Temperature of the relaxed Bernoulli.
      posterior_rate: How many times faster than everything else the logits of pi learn.
      posterior_rule: What SGD learns pi by: the gradient of its logits; their natural gradient,
        divided by the Fisher information pi (1 - pi); or the gradient of pi itself, kept in [0, 1].
      evaluation_samples: How many draws of b predictions are averaged over; 0 takes b = pi.
      keep_globals: Whether clients predict with the global variables that they had after their last
        training, rather than with the server's.
      aggregator: The mean of all clients, each counting the same, by default.

    Raises:
      ValueError: If a number is out of its range, a layer cannot be factorised, or the rule
        `probabilities` meets an optimizer that is not plain SGD.
    """
    if posterior_rule == "probabilities" and not (
        is_sgd(training.optimizer) and not training.weight_decay and training.clip_norm is None
    ):
        raise ValueError(
            "posterior_rule=probabilities moves pi by a step of SGD without momentum, weight decay "
            "and clipping; leave these out, or take another rule."
        )
    model = dataclasses.replace(
        architecture,
        kind=FactorizedLayers(
            architecture.kind.bias,
            factors,
            alpha_over_factors,
            temperature,
            posterior_rate,
            posterior_rule,
        ),
    ).model(local=is_posterior)
    factorized = {spec.path.split("/")[0] for spec in model.specs if is_posterior(spec.path)}
    if wrong := sorted(set(factors or ()) - factorized):
        raise ValueError(
            "WAFFLe factorises hidden dense layers and convolutions; found none in this network "
            f"called {', '.join(wrong)}, but the layers {', '.join(architecture.layers)}."
        )
    work = equally_weighted(local_sgd(model, training))
    if keep_globals:
        work = keeping_globals(work)
    step = apply_update(model, server_optimizer)
    if evaluation_samples:
        model = averaging_samples(model, evaluation_samples)
    return compose(model, work, seed=seed, aggregator=aggregator, server_step=step)
