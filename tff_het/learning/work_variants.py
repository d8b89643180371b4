"""Variants of a client work: with other weights, or with more client state."""

from typing import Any, NamedTuple

import tensorflow as tf

from tff_het.learning.client_work import ClientResult, ClientState, ClientWork, Download
from tff_het.models.model import ClientContext, Model, Weights


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


class Kept(NamedTuple):
    """What a client keeps that keeps global variables.

    Attributes:
      weights: The global variables.
      known: bool [], whether it has kept any yet.
      rest: What the work keeps besides.
    """

    weights: Weights
    known: Any
    rest: Any


def keeping_globals(work: ClientWork, model: Model) -> ClientWork:
    """The same work, after which a client keeps the global variables, and predicts with them.

    Until it has trained for the first time, it predicts with the server's.
    """

    def train(
        download: Download,
        examples: Any,
        client: ClientContext,
        seed: tf.Tensor,
        state: ClientState,
    ) -> ClientResult:
        own = state._replace(work=state.work.rest)
        result = work.train(download, examples, client, seed, own)
        weights = tf.nest.map_structure(tf.add, download.weights, result.update)
        kept = Kept(weights, tf.ones([], tf.bool), result.state.work)
        return result._replace(state=result.state._replace(work=kept))

    def initial_work(seed: int, local: Weights) -> Kept:
        specs = model.tensor_specs.global_weights
        weights = tf.nest.map_structure(lambda spec: tf.zeros(spec.shape, spec.dtype), specs)
        return Kept(weights, tf.zeros([], tf.bool), work.initial_work(seed, local))

    def serves(weights: Weights, state: ClientState) -> Weights:
        return state.work.weights if state.work.known else weights

    return work._replace(train=train, initial_work=initial_work, serves=serves)
