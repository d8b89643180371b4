"""Client works: local SGD, and variants of any work."""

import dataclasses
import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import tensorflow as tf

from tff_het.learning import acquisition as acquiring
from tff_het.learning import steps
from tff_het.learning.client_work import (
    ClientResult,
    ClientState,
    ClientWork,
    Download,
    reads_round,
    reads_weights,
    starts_with_nothing,
)
from tff_het.learning.local_training import LocalTraining
from tff_het.models.model import ClientContext, Model, Variables, VariableSpec, Weights

if TYPE_CHECKING:
    from tff_het.learning.process import ServerState


def local_sgd(
    model: Model,
    training: LocalTraining,
    penalty: Callable[[Download, ClientState], steps.Penalty] | None = None,
) -> ClientWork:
    """Local SGD on all trainable variables; sends the change of the global ones.

    Local variables continue from the client's state; the update is weighted by
    the number of the client's examples (McMahan et al. 2017, Algorithm 1). With an acquisition
    the weight counts the acquired examples (the kept ones once for each acquisition), and the
    optimizer's state starts afresh for each.

    Args:
      model: The model.
      training: The settings.
      penalty: What a client downloads and keeps -> what is added to the loss of every step.

    Raises:
      ValueError: If examples cannot be acquired for this model.
    """
    acquisition = training.acquisition
    if acquisition is not None:
        acquiring.check(model, acquisition)
    steps_of_one = dataclasses.replace(training, acquisition=None)

    def train(download, examples, client, seed, state) -> ClientResult:
        before = Variables(download.weights, state.model)
        added = None if penalty is None else penalty(download, state)
        train_on = functools.partial(
            steps.fit, model, steps_of_one, round_num=download.round, penalty=added
        )
        given = (before, examples, client, seed)
        if acquisition is None:
            (after, metrics), kept = train_on(*given), state.work
        else:
            after, metrics, kept = acquiring.train_on_acquired(
                model, acquisition, train_on, *given, state.work, steps.no_metrics(model)
            )
        return sends_change(before, after, metrics, state._replace(work=kept))

    def init(client: int, seed: int, server_state: "ServerState") -> ClientState:
        state = starts_with_nothing(client, seed, server_state)
        if acquisition is None:
            return state
        return state._replace(work=acquiring.initial(acquisition, seed))

    return ClientWork(train, init, reads_for(training))


def fine_tuning(
    model: Model,
    training: LocalTraining,
    epochs: int,
    trains: Callable[[VariableSpec], bool] = steps.is_any,
) -> Callable[..., Variables]:
    """Returns `adapt` of clients that train further before they predict.

    Args:
      model: The model.
      training: The settings; a schedule of the learning rate does not count.
      epochs: Passes over the client's training examples.
      trains: Which variables are trained.

    Raises:
      ValueError: If examples are to be acquired: fine-tuning would take the others' labels too.
    """
    if training.acquisition is not None:
        raise ValueError(
            "Clients fine-tune on all of their training examples, which takes the labels of those "
            "that were not acquired: leave the acquisition out, or choose another method."
        )
    settings = dataclasses.replace(
        training, epochs=epochs, steps=None, at_most_one_pass=False, learning_rate=None
    )

    def adapt(download, examples, client, seed, state) -> Variables:
        before = Variables(download.weights, state.model)
        return steps.fit(model, settings, before, examples, client, seed, trains=trains)[0]

    return adapt


def reads_for(*settings: LocalTraining) -> Callable[["ServerState"], Download]:
    """Returns what clients download: the global variables, and the round for a schedule."""
    has_schedule = any(training.learning_rate is not None for training in settings)
    return reads_round if has_schedule else reads_weights


def sends_change(
    before: Variables, after: Variables, metrics: Any, state: ClientState
) -> ClientResult:
    """Returns what a client sends that trained: the change of the global variables, by examples.

    It keeps the local variables after training, beside what else is in `state`.
    """
    return ClientResult(
        update=tf.nest.map_structure(tf.subtract, after.global_weights, before.global_weights),
        weight=tf.cast(metrics["num_examples"], tf.float32),
        metrics=metrics,
        state=state._replace(model=after.local_weights),
    )


def weighted_by_norm(work: ClientWork) -> ClientWork:
    """The same work, whose weight is multiplied by the norm of the trainable part of its update.

    Liang et al. (2019), §2.2, after Alain et al. (2015).
    """

    def train(*args: Any) -> ClientResult:
        result = work.train(*args)
        norm = tf.linalg.global_norm(result.update.trainable)
        return result._replace(weight=result.weight * norm)

    return work._replace(train=train)


def equally_weighted(work: ClientWork) -> ClientWork:
    """The same work with weight 1 for every client that has examples, and 0 for the others."""

    def train(*args: Any) -> ClientResult:
        result = work.train(*args)
        return result._replace(weight=tf.sign(result.weight))

    return work._replace(train=train)


class Personal(NamedTuple):
    """What a client keeps that has a model of its own beside the shared one.

    Attributes:
      weights: Its own global variables.
      rest: What the work keeps besides.
    """

    weights: Weights
    rest: Any


def keeping_globals(work: ClientWork) -> ClientWork:
    """The same work, after which a client keeps the global variables, and predicts with them.

    Until it has trained for the first time, it predicts with the server's.
    """

    def train(download, examples, client, seed, state) -> ClientResult:
        own = state._replace(work=state.work.rest)
        result = work.train(download, examples, client, seed, own)
        weights = tf.nest.map_structure(tf.add, download.weights, result.update)
        kept = Personal(weights, result.state.work)
        return result._replace(state=result.state._replace(work=kept))

    return work._replace(train=train, init=starts_from_globals(work), adapt=with_own_globals)


def starts_from_globals(work: ClientWork) -> Callable[[int, int, "ServerState"], ClientState]:
    """Returns `init` of a client whose own model starts as the server's is when they first meet."""

    def init(client: int, seed: int, server_state: "ServerState") -> ClientState:
        state = work.init(client, seed, server_state)
        return state._replace(work=Personal(server_state.weights, state.work))

    return init


def with_own_globals(
    download: Download, examples: Any, client: ClientContext, seed: tf.Tensor, state: ClientState
) -> Variables:
    """Returns what a client predicts with that has a model of its own: that one."""
    del download, examples, client, seed
    return Variables(state.work.weights, state.model)
