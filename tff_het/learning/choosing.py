"""Server steps that evaluate models on examples of the server's, and go on with one of them."""

import collections
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from tff_het import seeding
from tff_het.learning import mc_dropout
from tff_het.learning.server_step import ServerStep
from tff_het.learning.stacking import Signed
from tff_het.models.model import ClientContext, Model, Variables, Weights

# Examples that are looked at together: bounds the memory.
_BATCH_SIZE = 500
# In the measurements: what is of no single client.
NO_CLIENT = -1


class _State(NamedTuple):
    """What the server keeps: the examples, the seed, and how many rounds it has evaluated."""

    examples: Any
    seed: Any
    rounds: Any


def best(
    model: Model,
    examples: Mapping[str, np.ndarray],
    dropout_samples: int,
    seed: int,
    *,
    mean_competes: bool = False,
) -> ServerStep:
    """Takes the client model with the highest accuracy; ties go to the lowest index.

    The aggregate has to be that of `stacking.StackFactory`. A round in which no client has sent
    anything changes nothing. The measurements are `client`, whose model was taken, its `accuracy`,
    and `clients` [k] and `accuracies` [k] of all that were evaluated; `NO_CLIENT` and 0 if none.

    Args:
      model: The model, all of it global.
      examples: What models are evaluated on: the columns that clients hold, `y` among them,
        [n, ...] each with n > 0.
      dropout_samples: Passes under dropout whose probabilities are averaged.
      seed: The passes of all rounds follow from it.
      mean_competes: Whether the mean of the clients' models, each counting the same, is taken where
        it scores as high. In the measurements it is the first of `clients`, as `NO_CLIENT`.

    Raises:
      ValueError: If the server cannot call the model, or examples or passes do not fit it.
    """
    _check(model, examples, dropout_samples)

    def initial():
        columns = [(name, examples[name]) for name in model.example_spec]
        own_seed = seeding.stateless_seed(seed, seeding.SERVER)
        return _State(collections.OrderedDict(columns), own_seed, np.int32(0))

    def step(state: _State, weights: Weights, stack: Signed):
        # The same for all models of a round: they differ by their weights alone.
        of_round = tf.random.experimental.stateless_fold_in(state.seed, state.rounds)

        def num_correct(change: Weights) -> tf.Tensor:
            candidate = tf.nest.map_structure(tf.add, weights, change)
            return _num_correct(model, candidate, state.examples, of_round, dropout_samples)

        def judged(changes: Weights) -> tf.Tensor:  # int32 [rows]
            return tf.map_fn(num_correct, changes, fn_output_signature=tf.int32)

        # The mean, which of no clients is no change, stands first: of equals, the first is taken.
        number = tf.cast(tf.maximum(tf.size(stack.client), 1), tf.float32)
        changes = tf.nest.map_structure(
            lambda rows: tf.concat([tf.reduce_sum(rows, 0, keepdims=True) / number, rows], 0),
            stack.change,
        )
        clients = tf.concat([[NO_CLIENT], stack.client], 0)
        # The mean, where it does not compete, is taken if it is alone.
        alone = tf.constant([-1])
        correct = judged(changes) if mean_competes else tf.concat([alone, judged(stack.change)], 0)
        taken = tf.argmax(correct)
        accuracies = tf.cast(tf.maximum(correct, 0), tf.float32) / state.examples["y"].shape[0]
        measurements = collections.OrderedDict(
            client=clients[taken],
            accuracy=accuracies[taken],
            clients=clients if mean_competes else clients[1:],
            accuracies=accuracies if mean_competes else accuracies[1:],
        )
        weights = tf.nest.map_structure(lambda w, rows: w + rows[taken], weights, changes)
        return state._replace(rounds=state.rounds + 1), weights, measurements

    return ServerStep(initial, step)


def _num_correct(
    model: Model, weights: Weights, examples: Any, seed: tf.Tensor, passes: int
) -> tf.Tensor:
    """Returns int32 [], for how many examples the mean over passes gives the right class most."""
    variables = Variables(weights, Weights([], []))
    num_examples = examples["y"].shape[0]
    client = ClientContext(*(tf.constant(value) for value in (0, num_examples, 1)))  # No one's.

    def add(start: tf.Tensor, correct: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        batch = {name: column[start : start + _BATCH_SIZE] for name, column in examples.items()}
        own = tf.random.experimental.stateless_fold_in(seed, start)
        draws = mc_dropout.probabilities(model, variables, batch, client, own, passes)
        found = tf.argmax(tf.reduce_mean(draws, 0), axis=-1, output_type=tf.int32)
        return start + _BATCH_SIZE, correct + tf.math.count_nonzero(
            tf.equal(found, batch["y"]), dtype=tf.int32
        )

    nothing = (tf.zeros([], tf.int32), tf.zeros([], tf.int32))
    return tf.while_loop(lambda start, _: start < num_examples, add, nothing)[1]


def _check(model: Model, examples: Mapping[str, np.ndarray], dropout_samples: int) -> None:
    local = [spec.path for spec in model.specs if spec.local]
    if local or model.client_is_input:
        raise ValueError(
            "The server judges whole models, without knowing a client; in this one "
            + (f"{', '.join(local)} stay at the client." if local else "predictions depend on it.")
        )
    if dropout_samples < 1:
        raise ValueError(f"dropout_samples must be 1 or more passes, found {dropout_samples}.")
    wanted = {name: (s.dtype.name, (*s.shape[1:],)) for name, s in model.example_spec.items()}
    found = {name: (c.dtype.name, c.shape[1:]) for name, c in examples.items()}
    if found != wanted or "y" not in found:
        raise ValueError(
            f"The server judges by examples as clients hold them, {wanted}; found {found}."
        )
    lengths = {len(column) for column in examples.values()}
    if len(lengths) != 1 or lengths == {0}:
        raise ValueError(
            "The server needs one or more examples to judge by, in columns of equal length; found "
            f"lengths {sorted(lengths)}."
        )
