"""Per-FedAvg: a shared start from which one step on a client's data makes a good model.

A. Fallah, A. Mokhtari, A. Ozdaglar: Personalized Federated Learning with Theoretical Guarantees: A
Model-Agnostic Meta-Learning Approach (2020), Algorithm 1 with the approximations of section 5.

| paper                              | here                                                      |
|------------------------------------|-----------------------------------------------------------|
| w                                  | `ServerState.weights`; the mean counts clients equally    |
| alpha, beta                        | `adaptation_rate`, the clients' learning rate             |
| tau, D, D', D''                    | the steps of `training`; two or three batches a step      |
| w' = w - alpha g(w; D)             | `moved(w, g, -alpha)`                                     |
| w - beta g(w'; D'), first order    | SGD on the loss at w', whose slope by w is taken to be 1  |
| Hessian-free, with D''             | also the difference of losses at w +- delta g'            |

A client predicts after `adaptation_steps` steps of rate alpha on its training examples.
"""

from typing import Literal

import tensorflow as tf

from tff_het.backend.names import tff
from tff_het.kinds import Positive, Repeats
from tff_het.learning import steps
from tff_het.learning.composer import AggregationFactory, compose
from tff_het.learning.descent import Descent, with_trainable
from tff_het.learning.local_training import LocalTraining
from tff_het.learning.process import FederatedProcess
from tff_het.learning.server_step import apply_update
from tff_het.learning.works import equally_weighted, local_sgd, sends_change
from tff_het.methods import opponents
from tff_het.models.architectures import Architecture
from tff_het.models.model import Variables


def build_per_fed_avg(
    architecture: Architecture,
    training: LocalTraining,
    *,
    seed: int,
    adaptation_rate: Positive = 0.005,
    adaptation_steps: Repeats = 1,
    variant: Literal["first_order", "hessian_free"] = "first_order",
    difference: Positive = 1e-3,
    client_weights: Literal["equal", "examples"] = "equal",
    aggregator: AggregationFactory | None = None,
    server_optimizer=None,
) -> FederatedProcess:
    """Builds Per-FedAvg: a shared start from which one step makes a good model.

    Args:
      architecture: The network, all of it shared.
      training: Settings of the clients' local SGD; its steps take two batches each, or three.
      adaptation_rate: alpha, the rate of the steps that make a client's own model.
      adaptation_steps: Steps on its training examples that a client takes before it predicts.
      variant: Whether second derivatives are left out, or taken from differences of gradients.
      difference: delta, the size of these differences, for hessian_free.
      client_weights: Weights in the mean: equal, or by examples (as in PerMFL's released code).
      aggregator: The mean of all clients by default.

    Raises:
      ValueError: If examples are to be acquired, steps are limited to one pass, or the network has
        an opponent.
    """
    if training.at_most_one_pass:
        raise ValueError("per_fed_avg's steps take several batches: leave at_most_one_pass out.")
    opponents.refuse(architecture, "per_fed_avg")
    model = architecture.model(local=())
    is_equal = client_weights == "equal"
    shared = local_sgd(model, training)
    shared = equally_weighted(shared) if is_equal else shared
    own_steps = LocalTraining(
        tff.learning.optimizers.build_sgdm(adaptation_rate),
        batch_size=training.batch_size,
        steps=adaptation_steps,
    )
    is_exact = variant == "hessian_free"

    def meta_steps(round_num) -> steps.Steps:
        descent = Descent(model, training, round_num=round_num)

        def step(carry, batches, seeds, client):
            variables, state = carry

            def at(place: int, values: Variables):
                return model.loss(values, batches[place], client, seeds[place], True)

            first, result = steps.gradient(model, variables, batches[0], client, seeds[0])
            adapted = steps.moved(variables, first, -adaptation_rate)
            slope: list[tf.Tensor] = []
            if is_exact:
                slope, _ = steps.gradient(model, adapted, batches[1], client, seeds[1])

            def loss(values: Variables):
                found = at(1, steps.moved(values, first, -adaptation_rate))
                if not is_exact:
                    return found.loss, found
                up, down = (at(2, steps.moved(values, slope, s * difference)).loss for s in (1, -1))
                return found.loss - adaptation_rate * (up - down) / (2 * difference), found

            trainable, state, found = descent.step(loss, variables, state)
            return (with_trainable(found.variables, trainable), state), result.outputs

        def init(variables):
            return variables, descent.initial_state

        return steps.Steps(init, step, lambda carry: carry[0], 3 if is_exact else 2)

    def train(download, examples, client, seed, state):
        before = Variables(download.weights, state.model)
        of = meta_steps(download.round)
        after, metrics = steps.run(model, training, of, before, examples, client, seed)
        result = sends_change(before, after, metrics, state)
        return result._replace(weight=tf.sign(result.weight)) if is_equal else result

    def adapt(download, examples, client, seed, state):
        before = Variables(download.weights, state.model)
        return steps.fit(model, own_steps, before, examples, client, seed)[0]

    return compose(
        model,
        shared._replace(train=train, adapt=adapt),
        seed=seed,
        aggregator=aggregator,
        server_step=apply_update(model, server_optimizer),
    )
