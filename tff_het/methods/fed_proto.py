"""FedProto: clients share the mean features of each class, and no weights.

Y. Tan, G. Long, L. Liu, T. Zhou, Q. Lu, J. Jiang, C. Zhang: FedProto: Federated Prototype Learning
across Heterogeneous Clients (2022), Algorithm 1.

| paper (Algorithm 1)               | here                                                       |
|-----------------------------------|------------------------------------------------------------|
| omega_i                           | local variables, the whole model                           |
| C bar^(j)                         | global variable `prototypes`; `known`: which of them exist |
| L_S + lambda L_R, eq. (7)         | L_R: the mean over examples of the mean squared distance   |
|                                   | of their features to the prototype of their label          |
| C_i^(j), eq. (3)                  | means of `hidden` after training, without dropout          |
| mean over clients with j, eq. (6) | unweighted as in the authors' code, or by class counts     |

L_R follows the authors' code; the paper compares prototypes. A label without a prototype adds 0.
Classes that nobody sends keep theirs. What a client sends follows from its own model, by design.
"""

import dataclasses
from typing import Any, Literal, NamedTuple

import tensorflow as tf

from tff_het import kept
from tff_het.kinds import NotNegative
from tff_het.learning import steps
from tff_het.learning.client_work import ClientResult, ClientWork
from tff_het.learning.composer import compose
from tff_het.learning.local_training import LocalTraining
from tff_het.learning.process import FederatedProcess
from tff_het.learning.server_step import ServerStep
from tff_het.learning.works import reads_for
from tff_het.methods.warning import warn_if
from tff_het.models.architectures import Architecture
from tff_het.models.model import (
    EXAMPLE_WEIGHT,
    ClientContext,
    Model,
    Variables,
    VariableSpec,
    Weights,
)

_UNKNOWN = -1e9  # The logit of a class without a prototype: finite, so that losses are.


class Features(NamedTuple):
    """What a client sends, by class: means or sums of features, and what each counts."""

    sums: Any
    counts: Any


def build_fed_proto(
    architecture: Architecture,
    training: LocalTraining,
    *,
    seed: int,
    prototype_strength: NotNegative = 1.0,
    prototype_weights: Literal["equal", "counts"] = "equal",
    predict: Literal["model", "prototype"] = "model",
) -> FederatedProcess:
    """Builds FedProto: clients share the mean features of each class, and no weights.

    Args:
      architecture: The network, all of it local.
      training: Settings of the clients' SGD.
      prototype_strength: lambda, how strongly features are pulled to the prototypes.
      prototype_weights: Weights of clients in the prototype of a class: equal, or by their examples
        of the class.
      predict: What a client predicts with: its own classifier, or the nearest prototype.

    Raises:
      ValueError: If examples are to be acquired.
    """
    if training.acquisition is not None:
        raise ValueError("fed_proto trains on all examples: leave the acquisition out.")
    alone = not prototype_strength and predict == "model"
    warn_if(alone, "fed_proto with prototype_strength 0 is local training alone.")
    local = architecture.model(local=lambda path: True)
    model = _with_prototypes(local, float(prototype_strength), predict == "prototype")
    once = dataclasses.replace(training, epochs=1, steps=None, at_most_one_pass=False)
    once = dataclasses.replace(once, shuffle=False, augment=None)
    shape = model.specs[-2].shape

    def sums_of(variables) -> steps.Steps:
        def step(carry, batches, seeds, client):
            batch = batches[0]
            outputs = model.predict(variables, batch, client, seeds[0], False)
            of_class = tf.one_hot(batch["y"], shape[0]) * batch[EXAMPLE_WEIGHT][:, tf.newaxis]
            sums = tf.matmul(of_class, outputs["hidden"], transpose_a=True)
            return (carry[0] + sums, carry[1] + tf.reduce_sum(of_class, axis=0)), outputs

        return steps.Steps(lambda start: start, step, lambda carry: carry)

    def train(download, examples, client, seed, state):
        given = (examples, client, seed)
        before = Variables(download.weights, state.model)
        after, metrics = steps.fit(model, training, before, *given, download.round)
        zeros = (tf.zeros(shape), tf.zeros(shape[:1]))
        (sums, counts), _ = steps.run(model, once, sums_of(after), zeros, *given)
        if prototype_weights == "equal":
            sums = tf.math.divide_no_nan(sums, counts[:, tf.newaxis])
            counts = tf.sign(counts)
        weight = tf.sign(tf.cast(client.num_examples, tf.float32))
        kept_here = state._replace(model=after.local_weights)
        return ClientResult(Features(sums, counts), weight, metrics, kept_here)

    def step(state, weights, sent):
        (prototypes, known), (sums, counts) = weights.non_trainable, sent
        means = tf.math.divide_no_nan(sums, counts[:, tf.newaxis])
        prototypes = tf.where(counts[:, tf.newaxis] > 0, means, prototypes)
        return state, Weights([], [prototypes, tf.maximum(known, tf.sign(counts))]), ()

    work = ClientWork(train, reads=reads_for(training))
    return compose(model, work, seed=seed, server_step=ServerStep(lambda: (), step))


@kept.by_content(size=64)
def _with_prototypes(local: Model, strength: float, nearest: bool) -> Model:
    """The local model, beside global prototypes [classes, units] and which are known, [classes]."""
    shape = _shape(local)

    def own(variables: Variables) -> Variables:
        return Variables(Weights([], []), variables.local_weights)

    def initial(seed):
        start = Weights([], [tf.zeros(shape), tf.zeros(shape[:1])])
        return Variables(start, local.initial_variables(seed).local_weights)

    def predict(variables, *rest):
        outputs = dict(local.predict(own(variables), *rest))
        if nearest:
            prototypes, known = variables.global_weights.non_trainable
            between = outputs["hidden"][:, tf.newaxis] - prototypes
            logits = tf.where(known > 0, -tf.reduce_sum(tf.square(between), axis=-1), _UNKNOWN)
            is_any = tf.reduce_any(known > 0)
            outputs["logits"] = tf.where(is_any, logits, outputs["logits"])
        return outputs

    def loss(variables, batch, *rest):
        result = local.loss(own(variables), batch, *rest)
        prototypes, known = variables.global_weights.non_trainable
        wanted = tf.gather(prototypes, batch["y"])
        distance = tf.reduce_mean(tf.square(result.outputs["hidden"] - wanted), axis=-1)
        weight = batch[EXAMPLE_WEIGHT]
        pulled = tf.reduce_sum(weight * tf.gather(known, batch["y"]) * distance)
        pull = strength * tf.math.divide_no_nan(pulled, tf.reduce_sum(weight))
        after = Variables(variables.global_weights, result.variables.local_weights)
        return result._replace(loss=result.loss + pull, variables=after)

    def opponent_loss(variables, *rest):
        assert local.opponent_loss is not None
        return local.opponent_loss(own(variables), *rest)

    added = [
        VariableSpec(name, of, tf.float32, trainable=False, local=False)
        for name, of in (("prototypes", shape), ("known", shape[:1]))
    ]
    return dataclasses.replace(
        local,
        specs=(*local.specs, *added),
        initial_variables=initial,
        predict=predict,
        loss=loss,
        opponent_loss=None if local.opponent_loss is None else opponent_loss,
    )


def _shape(model: Model) -> tuple[int, int]:
    """How many classes the model tells apart, and how many features it has for that."""
    number = tf.TensorSpec([], tf.int32)

    @tf.function(
        input_signature=[
            model.tensor_specs,
            dict(model.example_spec),
            ClientContext(number, number, number),
            tf.TensorSpec([2], tf.int32),
        ]
    )
    def predict(variables, batch, client, seed):
        return model.predict(variables, batch, client, seed, False)

    outputs = predict.get_concrete_function().structured_outputs
    return outputs["logits"].shape[-1], outputs["hidden"].shape[-1]
