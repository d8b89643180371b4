"""What one client does in a round: its slot in the composer, and local SGD."""

import collections
import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow as tf

from tff_het.backend.names import tff
from tff_het.learning import acquisition as acquiring
from tff_het.learning import batching
from tff_het.learning.augmentation import Augmentation
from tff_het.learning.descent import Descent, trainable_of, with_trainable
from tff_het.models.model import EXAMPLE_WEIGHT, ClientContext, Model, Variables, Weights
from tff_het.numbers import INT32, Number

# Steps in one turn of the loop. A turn hands on every value that it carries, also those that a step
# only reads (the examples, the order), at the cost of three operations each.
_UNROLLED = 4


class Download(NamedTuple):
    """What a client receives.

    Attributes:
      weights: The model's global variables.
      round: int32 [], the server's round, counted from 0.
    """

    weights: Weights
    round: Any


class ClientState(NamedTuple):
    """What stays at a client from one round to the next; none of it travels.

    Attributes:
      model: The model's local variables.
      work: Whatever else the client work keeps (an auxiliary network, a pool).
      rounds: int32 [], how often the client has trained; 0 means never.
    """

    model: Weights
    work: Any
    rounds: Any


class Mean(NamedTuple):
    """A metric that is averaged over all clients' contributions: total / count."""

    total: Any
    count: Any


class ClientResult(NamedTuple):
    """What a client sends (`update`, `weight`, `metrics`) and keeps (`state`).

    Attributes:
      update: Structure of float tensors; for most methods the change of the
        global variables, as `Weights`.
      weight: float32 [], its weight where the aggregator takes a weighted mean.
      metrics: By name: a `Mean`, or a scalar to be summed.
      state: The `ClientState` after training (`rounds` is counted by the composer).
    """

    update: Any
    weight: Any
    metrics: Any
    state: ClientState


_COUNT = Number(1, INT32, is_whole=True)
_LIMITS = {
    "batch_size": _COUNT,
    "epochs": _COUNT,
    "steps": _COUNT,
    "opponent_steps": _COUNT,
    "clip_norm": Number(low=0, above=True),
    "weight_decay": Number(low=0),
}
_MOST_EXAMPLES = 50_000_000  # Of a client's round, whose order is laid out before its first step.

# (variables in a step, those at the beginning of the round) -> float32 [], added to the loss.
Penalty = Callable[[Variables, Variables], tf.Tensor]


class ClientWork(NamedTuple):
    """A slot of the composer.

    Attributes:
      train: (download, examples, client, seed, state) -> `ClientResult`, in
        TensorFlow, without variables. `client` is a `ClientContext`, `seed`
        int32 [2] that differs for each client and round.
      initial_work: (seed, what local variables start from) -> the first value of
        `ClientState.work`.
      uses_round: Whether `download.round` has to be sent; it is 0 otherwise.
      serves: (the server's global variables, a client's state) -> those that it predicts with.
    """

    train: Callable[[Download, Any, ClientContext, tf.Tensor, ClientState], ClientResult]
    initial_work: Callable[[int, Weights], Any] = lambda seed, local: ()
    uses_round: bool = False
    serves: Callable[[Weights, ClientState], Weights] = lambda weights, state: weights


@dataclasses.dataclass(frozen=True)
class LocalTraining:
    """Settings of local SGD.

    Attributes:
      optimizer: Any of `tff.learning.optimizers`; its state starts afresh in
        every round.
      batch_size: Examples a step; the last batch of a pass may be short.
      epochs: Passes over the client's examples. Exactly one of `epochs` and
        `steps` is given.
      steps: Number of steps, over as many passes as that takes.
      at_most_one_pass: With `steps`: stop at the end of the first pass.
      shuffle: Whether each pass has an order of its own.
      augment: Function of (x, seed) for each batch, such as `crop_and_flip()`.
      weight_decay: Added to the gradient as `weight_decay * w` (coupled L2) for all
        trainable variables, before clipping.
      clip_norm: Gradients are scaled down to this global norm.
      learning_rate: Schedule: round (int32 [], from 0) -> the learning rate of
        that round, instead of the optimizer's own.
      opponent_steps: Of a model with an opponent: how many steps this makes for each of the rest.
        It makes one on every batch, the rest one on each batch of that number.
      acquisition: How clients acquire what they train on, where that is not all of their examples:
        `epochs` or `steps` are then those of one acquisition.
    """

    optimizer: Any
    batch_size: int
    epochs: int | None = None
    steps: int | None = None
    at_most_one_pass: bool = False
    shuffle: bool = True
    augment: Augmentation | None = None
    weight_decay: float = 0.0
    clip_norm: float | None = None
    learning_rate: Callable[[tf.Tensor], tf.Tensor] | None = None
    opponent_steps: int = 1
    acquisition: acquiring.Acquisition | None = None

    def __post_init__(self):
        if (self.epochs is None) == (self.steps is None):
            raise ValueError(
                "Give the length of local training as either epochs or steps; found "
                f"epochs={self.epochs}, steps={self.steps}."
            )
        for name, number in _LIMITS.items():
            if (value := getattr(self, name)) is not None:
                number.check(name, value)
        if self.at_most_one_pass and self.steps is None:
            raise ValueError("at_most_one_pass limits `steps`, which is not given.")
        if not isinstance(self.optimizer, tff.learning.optimizers.Optimizer):
            raise TypeError(
                "optimizer must come from tff.learning.optimizers (Keras optimizers hold variables "
                f"and cannot run inside a client's work), found {type(self.optimizer).__name__}."
            )

    def within(self, largest: int) -> "LocalTraining":
        """Returns these settings for clients of at most `largest` examples.

        No batch is larger than that: the rest of it would be examples of weight 0.

        Raises:
          ValueError: If the round of such a client would be longer than can be laid out.
        """
        batch_size = min(self.batch_size, max(largest, 1))
        a_pass = -(-largest // batch_size)
        steps = self.steps or a_pass * (self.epochs or 1)
        if self.at_most_one_pass:
            steps = min(steps, a_pass)
        if steps * batch_size > _MOST_EXAMPLES:
            raise ValueError(
                f"A client of {largest} examples would take {steps} steps of {batch_size} in a "
                f"round, expected at most {_MOST_EXAMPLES} examples in all. Lower local epochs, "
                "local steps or the batch size."
            )
        return dataclasses.replace(self, batch_size=batch_size)


def local_sgd(model: Model, training: LocalTraining, penalty: Penalty | None = None) -> ClientWork:
    """Local SGD on all trainable variables; sends the change of the global ones.

    Local variables continue from the client's state; the update is weighted by
    the number of the client's examples (McMahan et al. 2017, Algorithm 1). With an acquisition
    that is those trained on, the kept ones once for each acquisition, and the optimizer's
    state starts afresh for each.

    Args:
      model: The model.
      training: The settings.
      penalty: Added to the loss of every step.

    Raises:
      ValueError: If examples cannot be acquired for this model.
    """
    acquisition = training.acquisition
    if acquisition is not None:
        acquiring.check(model, acquisition)
    steps_of_one = dataclasses.replace(training, acquisition=None)

    def train(
        download: Download,
        examples: Any,
        client: ClientContext,
        seed: tf.Tensor,
        state: ClientState,
    ) -> ClientResult:
        before = Variables(download.weights, state.model)

        def train_on(variables: Variables, examples: Any, client: ClientContext, seed: tf.Tensor):
            return sgd_steps(
                model,
                steps_of_one,
                variables,
                examples,
                client,
                seed,
                download.round,
                penalty,
                start=before,
            )

        if acquisition is None:
            (after, metrics), kept = train_on(before, examples, client, seed), state.work
        else:
            after, metrics, kept = acquiring.train_on_acquired(
                model,
                acquisition,
                train_on,
                before,
                examples,
                client,
                seed,
                state.work,
                _no_metrics(model),
            )
        update = tf.nest.map_structure(tf.subtract, after.global_weights, before.global_weights)
        return ClientResult(
            update=update,
            weight=tf.cast(metrics["num_examples"], tf.float32),
            metrics=metrics,
            state=state._replace(model=after.local_weights, work=kept),
        )

    def initial_work(seed: int, local: Weights) -> Any:
        del local
        return () if acquisition is None else acquiring.initial(acquisition, seed)

    return ClientWork(train, initial_work, uses_round=training.learning_rate is not None)


def sgd_steps(
    model: Model,
    training: LocalTraining,
    variables: Variables,
    examples: Any,
    client: ClientContext,
    seed: tf.Tensor,
    round_num: tf.Tensor,
    penalty: Penalty | None = None,
    *,
    start: Variables | None = None,
) -> tuple[Variables, collections.OrderedDict]:
    """Runs the steps of one client's local training.

    An opponent's variables (`Model.opponent_loss`) make a step of their own on each batch, before
    all others make theirs; each side has its own optimizer state, and gradients are clipped by the
    norm of the side.

    A loop over gathered batches rather than a `tf.data` pipeline: it needs no
    Python and no iterator, and every runtime runs it best.

    Args:
      model: The model.
      training: The settings.
      variables: The values to start from.
      examples: The client's examples, columns [n, ...].
      client: The client.
      seed: int32 [2].
      round_num: int32 [], for the learning rate's schedule.
      penalty: Added to the loss of every step, the opponent's too; not part of the metrics.
      start: What the penalty is given for the beginning of the round; `variables` by default.

    Returns:
      The variables after training, and metrics: `Mean`s over the examples of all
      steps, measured at the variables before each step (and after the opponent's).

    Raises:
      ValueError: If the examples are to be acquired, which is done around these steps.
    """
    if training.acquisition is not None:
        raise ValueError(
            "These steps are made on all of a client's examples, as in federated reconstruction or "
            "when a new client is fitted: acquire examples (acquisition="
            f"{training.acquisition.function}) with another method, or leave the acquisition out."
        )
    start = variables if start is None else start
    fold_in = tf.random.experimental.stateless_fold_in
    order_seed, step_seed = fold_in(seed, 0), fold_in(seed, 1)
    steps = batching.num_steps(
        client.num_examples,
        training.batch_size,
        epochs=training.epochs,
        steps=training.steps,
        at_most_one_pass=training.at_most_one_pass,
    )
    indices, weights = batching.plan(
        client.num_examples, training.batch_size, steps, order_seed, shuffle=training.shuffle
    )

    def take_batch(step: tf.Tensor, seed: tf.Tensor) -> dict[str, tf.Tensor]:
        rows = tf.gather(indices, step)
        batch = {name: tf.gather(column, rows) for name, column in examples.items()}
        if training.augment is not None:
            batch["x"] = training.augment(batch["x"], fold_in(seed, 1))
        return batch | {EXAMPLE_WEIGHT: tf.gather(weights, step)}

    def penalised(loss: tf.Tensor, variables: Variables) -> tf.Tensor:
        return loss if penalty is None else loss + penalty(variables, start)

    rate = training.learning_rate
    prepare = functools.partial(
        Descent,
        training.optimizer,
        variables=variables,
        learning_rate=None if rate is None else tf.cast(rate(round_num), tf.float32),
        weight_decay=training.weight_decay,
        clip_norm=training.clip_norm,
    )
    of_opponent = [spec.opponent for spec in trainable_of(model.split(model.specs))]
    descent = prepare([not is_opponents for is_opponents in of_opponent])
    opponent = prepare(of_opponent) if any(of_opponent) else None

    def step_fn(step, variables: Variables, states, totals):
        seed = fold_in(step_seed, step)
        batch = take_batch(step, seed)
        # With the same seed both losses see the same representation.
        context = (batch, client, fold_in(seed, 0), True)

        def opponent_loss(variables: Variables):
            assert model.opponent_loss is not None
            return penalised(model.opponent_loss(variables, *context), variables), None

        def loss(variables: Variables):
            result = model.loss(variables, *context)
            return penalised(result.loss, variables), result

        state, opponent_state = states
        if opponent is not None:
            trainable, opponent_state, _ = opponent.step(opponent_loss, variables, opponent_state)
            variables = with_trainable(variables, trainable)
        before = trainable_of(variables), state
        trainable, state, result = descent.step(loss, variables, state)
        if opponent is not None and training.opponent_steps > 1:
            turn = tf.equal((step + 1) % training.opponent_steps, 0)
            trainable, state = tf.nest.map_structure(
                lambda new, old: tf.where(turn, new, old), (trainable, state), before
            )
        values = [metric(batch, result.outputs) for metric in model.metrics.values()]
        totals += batch[EXAMPLE_WEIGHT] * tf.stack(values)  # [metrics, b]
        variables = with_trainable(result.variables, trainable)
        return step + 1, variables, (state, opponent_state), totals

    totals = tf.zeros([len(model.metrics), training.batch_size])
    states = (descent.initial_state, () if opponent is None else opponent.initial_state)
    carried = (tf.zeros([], tf.int32), variables, states, totals)

    def several(*carried):
        for _ in range(_UNROLLED):
            carried = step_fn(*carried)
        return carried

    carried = tf.while_loop(lambda step, *_: step <= steps - _UNROLLED, several, carried)
    _, variables, _, totals = tf.while_loop(lambda step, *_: step < steps, step_fn, carried)
    seen = tf.reduce_sum(weights)
    sums = tf.reduce_sum(totals, axis=1)
    metrics: dict[str, Any] = {name: Mean(sums[i], seen) for i, name in enumerate(model.metrics)}
    metrics["num_examples"] = client.num_examples
    return variables, collections.OrderedDict(metrics)


def _no_metrics(model: Model) -> collections.OrderedDict:
    """The metrics of `sgd_steps` before any step."""
    metrics: dict[str, Any] = {name: Mean(tf.zeros([]), tf.zeros([])) for name in model.metrics}
    metrics["num_examples"] = tf.zeros([], tf.int32)
    return collections.OrderedDict(metrics)
