"""A client's local training as init, step and final, repeated over batches of its examples.

    carry = steps.init(variables)
    for each batch: carry, outputs = steps.step(carry, [batch], [seed], client)
    variables = steps.final(carry)

`sgd` gives the steps of an optimizer. A method that needs others (two gradients on a batch, several
batches a step) writes these three functions; `run` is the loop around them.
"""

import collections
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from tff_het.learning import batching
from tff_het.learning.client_work import Mean
from tff_het.learning.descent import Descent, trainable_of, with_trainable
from tff_het.learning.local_training import LocalTraining
from tff_het.models.model import (
    EXAMPLE_WEIGHT,
    Batch,
    ClientContext,
    LossOutput,
    Model,
    Outputs,
    Variables,
    VariableSpec,
    Weights,
)

# Steps in one iteration of the loop: each loop-carried tensor costs three operations per iteration,
# also where a step only reads it (the examples, the order).
_UNROLLED = 4

# Variables in a step -> float32 [], added to the loss.
Penalty = Callable[[Variables], tf.Tensor]
_fold_in = tf.random.experimental.stateless_fold_in


class Steps(NamedTuple):
    """What local training repeats.

    Attributes:
      init: Variables, or what else the work starts from -> what steps hand on, any structure.
      step: (what they hand on, batches, a seed int32 [2] for each, client) -> (what they hand on,
        the model's outputs for the first batch, for the metrics).
      final: What they hand on -> variables, or whatever the work makes of it.
      batches: How many batches a step takes.
    """

    init: Callable[[Any], Any]
    step: Callable[[Any, Sequence[Batch], Sequence[tf.Tensor], ClientContext], tuple[Any, Outputs]]
    final: Callable[[Any], Any]
    batches: int = 1


def is_any(spec: VariableSpec) -> bool:
    """Whether a variable is any at all; for `trains`."""
    return True


def is_local(spec: VariableSpec) -> bool:
    """Whether a variable stays at the client; for `trains`."""
    return spec.local


def is_global(spec: VariableSpec) -> bool:
    """Whether a variable travels; for `trains`."""
    return not spec.local


def sgd(
    model: Model,
    training: LocalTraining,
    round_num: Any = (),
    penalty: Penalty | None = None,
    trains: Callable[[VariableSpec], bool] = is_any,
) -> Steps:
    """Returns steps of the optimizer.

    Args:
      model: The model. Where it has an opponent, that makes its own step on each batch first.
      training: The settings.
      round_num: int32 [], for the learning rate's schedule, if there is one.
      penalty: Added to the loss of every step, the opponent's too; not part of the metrics.
      trains: Which of the trainable variables are stepped; by default all.
    """
    specs = trainable_of(model.split(model.specs))
    of_opponent = [spec.opponent and trains(spec) for spec in specs]
    owned = [trains(spec) and not spec.opponent for spec in specs]
    descent = Descent(model, training, owned, round_num)

    def step(carry, batches, seeds, client):
        variables, state = carry

        def loss(variables: Variables):
            result = model.loss(variables, batches[0], client, seeds[0], True)
            return _penalised(result.loss, variables, penalty), result

        trainable, state, result = descent.step(loss, variables, state)
        return (with_trainable(result.variables, trainable), state), result.outputs

    plain = Steps(
        lambda variables: (variables, descent.initial_state), step, lambda carry: carry[0]
    )
    if not any(of_opponent):
        return plain
    opponent = Descent(model, training, of_opponent, round_num)
    return _against_opponent(model, plain, opponent, training.opponent_steps, penalty)


def _against_opponent(
    model: Model, steps: Steps, descent: Descent, opponent_steps: int, penalty: Penalty | None
) -> Steps:
    """The same steps, before each of which the opponent (`Model.opponent_loss`) makes its own.

    Each side has its own optimizer state, and gradients are clipped by the norm of the side.
    """

    def step(carry, batches, seeds, client):
        (variables, state), opponent_state, number = carry

        def loss(variables: Variables):
            assert model.opponent_loss is not None
            # With the same seed both losses see the same representation.
            value = model.opponent_loss(variables, batches[0], client, seeds[0], True)
            return _penalised(value, variables, penalty), None

        trainable, opponent_state, _ = descent.step(loss, variables, opponent_state)
        before = with_trainable(variables, trainable), state
        (after, state), outputs = steps.step(before, batches, seeds, client)
        if opponent_steps > 1:
            turn = tf.equal((number + 1) % opponent_steps, 0)
            kept, state = tf.nest.map_structure(
                lambda new, old: tf.where(turn, new, old),
                (trainable_of(after), state),
                (trainable, before[1]),
            )
            after = with_trainable(after, kept)
        return ((after, state), opponent_state, number + 1), outputs

    return Steps(
        lambda variables: (steps.init(variables), descent.initial_state, tf.zeros([], tf.int32)),
        step,
        lambda carry: steps.final(carry[0]),
    )


def gradient(
    model: Model, variables: Variables, batch: Batch, client: ClientContext, seed: tf.Tensor
) -> tuple[list[tf.Tensor], LossOutput]:
    """Returns the loss's gradient by each of `trainable_of(variables)`, and what it is of."""
    trainable = trainable_of(variables)
    with tf.GradientTape() as tape:
        tape.watch(trainable)
        result = model.loss(variables, batch, client, seed, True)
    found = tape.gradient(
        result.loss, trainable, unconnected_gradients=tf.UnconnectedGradients.ZERO
    )
    return [tf.convert_to_tensor(g) for g in found], result


def moved(variables: Variables, by: Sequence[tf.Tensor], times: Any) -> Variables:
    """Returns variables of which those that are trainable are moved by a multiple of something."""
    pairs = zip(trainable_of(variables), by, strict=True)
    return with_trainable(variables, [w + times * change for w, change in pairs])


def _penalised(loss: tf.Tensor, variables: Variables, penalty: Penalty | None) -> tf.Tensor:
    return loss if penalty is None else loss + penalty(variables)


def proximal(strength: Any, center: Weights) -> Penalty:
    """Returns strength / 2 * |w - center|^2 over the trainable global variables w."""

    def penalty(variables: Variables) -> tf.Tensor:
        pairs = zip(variables.global_weights.trainable, center.trainable, strict=True)
        distance = tf.add_n([tf.reduce_sum(tf.square(w - w_t)) for w, w_t in pairs])
        return strength / 2 * distance

    return penalty


def linear(slopes: Sequence[tf.Tensor]) -> Penalty:
    """Returns <slopes, w> over the trainable global variables w."""

    def penalty(variables: Variables) -> tf.Tensor:
        pairs = zip(variables.global_weights.trainable, slopes, strict=True)
        return tf.add_n([tf.reduce_sum(w * slope) for w, slope in pairs])

    return penalty


def fit(
    model: Model,
    training: LocalTraining,
    variables: Variables,
    examples: Mapping[str, tf.Tensor],
    client: ClientContext,
    seed: tf.Tensor,
    round_num: Any = (),
    penalty: Penalty | None = None,
    trains: Callable[[VariableSpec], bool] = is_any,
) -> tuple[Variables, collections.OrderedDict]:
    """Runs `sgd` from some variables; arguments, result and errors as of `sgd` and `run`."""
    steps = sgd(model, training, round_num, penalty, trains)
    return run(model, training, steps, variables, examples, client, seed)


def run(
    model: Model,
    training: LocalTraining,
    steps: Steps,
    variables: Any,
    examples: Mapping[str, tf.Tensor],
    client: ClientContext,
    seed: tf.Tensor,
) -> tuple[Any, collections.OrderedDict]:
    """Repeats steps over batches of a client's examples.

    A loop over gathered batches rather than a `tf.data` pipeline: it needs no
    Python and no iterator, and every runtime runs it best.

    Args:
      model: The model, for its metrics.
      training: How many steps, and of which batches.
      steps: The steps.
      variables: What `steps.init` takes: the values to start from.
      examples: The client's examples, columns [n, ...].
      client: The client.
      seed: int32 [2].

    Returns:
      What `steps.final` gives, and metrics: `Mean`s over the examples of all
      steps, measured on each step's first batch before the step.

    Raises:
      ValueError: If the examples are to be acquired, which is done around these steps.
    """
    if training.acquisition is not None:
        raise ValueError(
            "These steps are made on all of a client's examples, as in federated reconstruction or "
            "when a new client is fitted: acquire examples (acquisition="
            f"{training.acquisition.function}) with another method, or leave the acquisition out."
        )
    order_seed, step_seed = _fold_in(seed, 0), _fold_in(seed, 1)
    number = training.num_steps(client.num_examples)
    indices, weights = batching.plan(
        client.num_examples,
        training.batch_size,
        number * steps.batches,
        order_seed,
        shuffle=training.shuffle,
    )

    def take_batch(place: tf.Tensor) -> tuple[Batch, tf.Tensor]:
        seed, rows = _fold_in(step_seed, place), tf.gather(indices, place)
        batch = {name: tf.gather(column, rows) for name, column in examples.items()}
        if training.augment is not None:
            batch["x"] = training.augment(batch["x"], _fold_in(seed, 1))
        return batch | {EXAMPLE_WEIGHT: tf.gather(weights, place)}, _fold_in(seed, 0)

    def one(step: tf.Tensor, carry: Any, totals: tf.Tensor):
        places = [step * steps.batches + place for place in range(steps.batches)]
        batches, seeds = zip(*map(take_batch, places if steps.batches > 1 else [step]), strict=True)
        carry, outputs = steps.step(carry, batches, seeds, client)
        values = [metric(batches[0], outputs) for metric in model.metrics.values()]
        totals += batches[0][EXAMPLE_WEIGHT] * tf.stack(values)  # [metrics, b]
        return step + 1, carry, totals

    def several(*carried):
        for _ in range(_UNROLLED):
            carried = one(*carried)
        return carried

    totals = tf.zeros([len(model.metrics), training.batch_size])
    carried = (tf.zeros([], tf.int32), steps.init(variables), totals)
    carried = tf.while_loop(lambda step, *_: step <= number - _UNROLLED, several, carried)
    _, carry, totals = tf.while_loop(lambda step, *_: step < number, one, carried)
    seen = tf.reduce_sum(weights[:: steps.batches] if steps.batches > 1 else weights)
    sums = tf.reduce_sum(totals, axis=1)
    metrics: dict[str, Any] = {name: Mean(sums[i], seen) for i, name in enumerate(model.metrics)}
    metrics["num_examples"] = client.num_examples
    return steps.final(carry), collections.OrderedDict(metrics)


def no_metrics(model: Model) -> collections.OrderedDict:
    """Returns the metrics of `run` before any step."""
    metrics: dict[str, Any] = {name: Mean(tf.zeros([]), tf.zeros([])) for name in model.metrics}
    metrics["num_examples"] = tf.zeros([], tf.int32)
    return collections.OrderedDict(metrics)
