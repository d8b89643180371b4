"""The "new test" of Liang et al. (2019, LG-FedAvg, §2.4): all clients' models on common data."""

import dataclasses
from collections.abc import Callable, Mapping

import numpy as np
import tensorflow as tf

from tff_het import seeding
from tff_het.clients import Population
from tff_het.evaluation.judging import in_client_order, judge, logits_of
from tff_het.evaluation.local_test import has_global_model
from tff_het.learning.client_work import ClientState
from tff_het.learning.process import FederatedProcess, ServerState


@dataclasses.dataclass(frozen=True)
class NewTest:
    """Result of `new_test`.

    Attributes:
      num_examples: Examples tested on.
      accuracy_average: In [0, 1], of the class with the highest mean of the clients' logits.
      accuracy_vote: In [0, 1], of the class that most clients' models prefer; of those with
        equally many, the first.
      loss: Mean cross entropy of the mean logits in nats; nan where some are not finite.
    """

    num_examples: int
    accuracy_average: float
    accuracy_vote: float
    loss: float


def new_test(
    process: FederatedProcess,
    server_state: ServerState,
    population: Population,
    client_state: Callable[[int], ClientState],
    examples: Mapping[str, np.ndarray],
    *,
    seed: int = 0,
) -> NewTest:
    """Tests the ensemble of all clients' models on a common test set.

    A client's model is the global weights with its own local state, also where it never trained.
    Whose an example is, nobody knows, so that all models predict it. Memory does not grow with the
    number of clients; sums are taken in their order, so that threads do not change them. Where all
    clients have the same model, this is `global_test`.

    Args:
      process: The process that the states belong to.
      server_state: Its server state.
      population: The clients, whose own examples are not used.
      client_state: A client's index -> its stored state, or its initial one; called
        by several threads.
      examples: Columns [n, ...], n > 0, among them `y`, integers [n].
      seed: Of the run, for what adapting and sampling draw.

    Raises:
      ValueError: If there are no examples, the model gives no logits, or a label is not one of
        its classes.
      KeyError: If the examples lack a column of the model.
    """
    labels = np.asarray(examples["y"])
    if not len(labels):
        raise ValueError("At least one example is needed to test on, found 0.")
    # `predict` converts arrays at every call, but takes tensors as they are.
    weights = tf.nest.map_structure(tf.convert_to_tensor, server_state.weights)
    state, round_num = server_state._replace(weights=weights), int(server_state.round)

    def predicted(client: int) -> np.ndarray:
        own = population[client]
        drawn = seeding.stateless_seed(seed, seeding.EVALUATION, round_num, client)
        model = process.adapt(state, client_state(client), own.train, client=client, seed=drawn)
        return logits_of(process, *model, examples, client, own.num_train_examples, drawn)

    # Of models that are all the same, one will do.
    is_one = has_global_model(process) and not process.adapts
    num_models = 1 if is_one else len(population)
    total, votes = np.zeros(()), np.zeros((), np.int64)
    for logits in in_client_order(predicted, num_models):  # [n, classes]
        total = total + logits
        votes = votes + (logits.argmax(axis=-1)[:, None] == np.arange(logits.shape[-1]))
    average = judge(total / num_models, labels)
    # As scipy.stats.mode, argmax takes the first of equals.
    accuracy_vote = float(np.mean(votes.argmax(axis=-1) == labels))
    return NewTest(len(labels), average.accuracy, accuracy_vote, average.loss)
