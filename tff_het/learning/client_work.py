"""What one client does in a round: its slot in the composer."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import tensorflow as tf

from tff_het.models.model import ClientContext, Variables, Weights

if TYPE_CHECKING:
    from tff_het.learning.process import ServerState


class Download(NamedTuple):
    """What a client receives; what a work does not read is empty, and does not travel.

    Attributes:
      weights: The model's global variables.
      round: int32 [], the server's round, counted from 0.
      more: Anything else of the server's state.
    """

    weights: Any
    round: Any = ()
    more: Any = ()


class ClientState(NamedTuple):
    """What stays at a client from one round to the next; none of it travels.

    Attributes:
      model: The model's local variables.
      work: Whatever else the client work keeps (a personal model, a control variate, a pool).
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
      update: Structure of float tensors: the change of the global variables, as `Weights`, or what
        has it as its field `change`, or anything else that the aggregator takes.
      weight: float32 [], its weight where the aggregator takes a weighted mean.
      metrics: By name: a `Mean`, or a scalar to be summed.
      state: The `ClientState` after training (`rounds` is counted by the composer).
    """

    update: Any
    weight: Any
    metrics: Any
    state: ClientState


def reads_weights(state: "ServerState") -> Download:
    """Clients download the global variables."""
    return Download(state.weights)


def reads_round(state: "ServerState") -> Download:
    """Clients download the global variables and the round, such as for a schedule."""
    return Download(state.weights, state.round)


def starts_with_nothing(client: int, seed: int, server_state: "ServerState") -> ClientState:
    """A client begins with the server's initial local variables, and keeps nothing else."""
    del client, seed
    return ClientState(server_state.initial_local, (), np.int32(0))


class ClientWork(NamedTuple):
    """A slot of the composer.

    Attributes:
      train: (download, examples, client, seed, state) -> `ClientResult`, in
        TensorFlow, without variables. `client` is a `ClientContext`, `seed`
        int32 [2] that differs for each client and round.
      init: (client's index, seed, server state) -> the `ClientState` of a client that has not
        trained yet; called with arrays, outside of TensorFlow's graphs.
      reads: Server state -> `Download`: selects what is sent to clients, and computes nothing.
      adapt: (download, examples, client, seed, state) -> the `Variables` that the client predicts
        with, in TensorFlow; None: the global variables beside its own local ones.
      upload_share: How much of an update a real client would send: the rest is known to be 0.
    """

    train: Callable[[Download, Any, ClientContext, tf.Tensor, ClientState], ClientResult]
    init: Callable[[int, int, "ServerState"], ClientState] = starts_with_nothing
    reads: Callable[["ServerState"], Download] = reads_weights
    adapt: Callable[[Download, Any, ClientContext, tf.Tensor, ClientState], Variables] | None = None
    upload_share: float = 1.0
