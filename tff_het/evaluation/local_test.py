"""Tests of models: each client's own on its own data, or the one global model on common data."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import tensorflow as tf
from sklearn import metrics

from tff_het import seeding
from tff_het.clients import Population
from tff_het.evaluation.judging import Judged, in_client_order, judge, logits_of
from tff_het.learning.client_work import ClientState
from tff_het.learning.process import FederatedProcess, ServerState
from tff_het.models.model import Weights

_SPLITS = ("train", "validation", "test")
Scored = tuple[np.ndarray, np.ndarray]


@dataclasses.dataclass(frozen=True, eq=False)
class LocalTest:
    """Result of `local_tests`; entry k of every array is the k-th of the clients that were tested.

    Attributes:
      client_ids: The clients' ids.
      num_examples: int64 [K], examples tested on; may be 0.
      accuracy: float64 [K], in [0, 1]; nan for clients without examples.
      loss: float64 [K], mean cross entropy in nats; nan for clients without
        examples, or where the model's outputs are not finite.
      rounds: int64 [K], how often each client has trained; 0 means never.
      groups: [K], the clients' sub-populations; empty names where there are none.
      pooled_auc: With two classes: area under the ROC curve of all clients' examples together, each
        scored by its own client's model (logit of class 1 minus that of class 0); None with more
        classes or where one has no examples, nan where the model's outputs are not finite.
    """

    client_ids: tuple[str, ...]
    num_examples: np.ndarray
    accuracy: np.ndarray
    loss: np.ndarray
    rounds: np.ndarray
    groups: tuple[str, ...]
    pooled_auc: float | None


def local_tests(
    process: FederatedProcess,
    server_state: ServerState,
    population: Population,
    client_state: Callable[[int], ClientState],
    splits: Sequence[str],
    *,
    seed: int = 0,
    adapt: bool = True,
    clients: Sequence[int] | None = None,
) -> dict[str, LocalTest]:
    """Tests every client's own model on the client's own examples.

    This is the "local test" of Liang et al. (2019, LG-FedAvg). A client's model is the global
    weights with its own local state, or what the method makes of them before it predicts
    (`FederatedProcess.adapt`). Also tested are clients that no round has sampled yet; no more
    states are held at a time than there are cores.

    Args:
      process: The process that the states belong to.
      server_state: Its server state.
      population: The clients.
      client_state: A client's index -> its stored state, or its initial one; called
        by several threads.
      splits: Some of 'train', 'validation' and 'test'.
      seed: Of the run, for what adapting and sampling draw.
      adapt: Whether clients adapt the model first, where the method has them do so.
      clients: Places in the population of those tested; all by default.

    Returns:
      The result of each split.

    Raises:
      ValueError: If there is no such split, the model gives no logits, or a label
        is not one of its classes.
      KeyError: If the examples lack a column of the model.
    """
    for split in splits:
        if split not in _SPLITS:
            raise ValueError(f"split must be one of {', '.join(_SPLITS)}; found {split!r}.")
    # `predict` converts arrays at every call, but takes tensors as they are.
    weights = tf.nest.map_structure(tf.convert_to_tensor, server_state.weights)
    server_state = server_state._replace(weights=weights)
    round_num = int(server_state.round)

    chosen = range(len(population)) if clients is None else clients

    def test(place: int) -> list[tuple[int, float, float, int, Scored | None]]:
        index = chosen[place]
        client, state = population[index], client_state(index)
        rounds, own = int(state.rounds), weights
        drawn = seeding.stateless_seed(seed, seeding.EVALUATION, round_num, index)
        if adapt and process.adapts:
            own, state = process.adapt(server_state, state, client.train, client=index, seed=drawn)
        results = []
        for split in splits:
            examples = getattr(client, split)
            found, scores = Judged(np.nan, np.nan), None
            if num_examples := len(examples["y"]):
                of = (examples, index, client.num_train_examples, drawn)
                logits = logits_of(process, own, state, *of)
                found, scores = judge(logits, examples["y"]), _scored(examples["y"], logits)
            results.append((num_examples, found.accuracy, found.loss, rounds, scores))
        return results

    of_clients = list(in_client_order(test, len(chosen)))
    tests = {}
    for split, results in zip(splits, zip(*of_clients, strict=True), strict=True):
        num_examples, accuracy, loss, rounds, scores = zip(*results, strict=True)
        tests[split] = LocalTest(
            tuple(population.ids[index] for index in chosen),
            np.array(num_examples, np.int64),
            np.array(accuracy, np.float64),
            np.array(loss, np.float64),
            np.array(rounds, np.int64),
            tuple(population.groups[index] for index in chosen),
            _pooled_auc(scores),
        )
    return tests


def _scored(labels: np.ndarray, logits: np.ndarray) -> Scored | None:
    """Labels, and by how much class 1 is preferred, [n]; with two classes alone."""
    if logits.shape[-1] != 2:
        return None
    with np.errstate(invalid="ignore"):  # Infinite logits have no difference.
        return labels, logits[:, 1] - logits[:, 0]


def _pooled_auc(scores: Sequence[Scored | None]) -> float | None:
    pairs = [pair for pair in scores if pair is not None]
    if not pairs:
        return None
    y, score = (np.concatenate(parts) for parts in zip(*pairs, strict=True))
    if len(np.unique(y)) < 2:
        return None
    return float(metrics.roc_auc_score(y, score)) if np.isfinite(score).all() else np.nan


def has_global_model(process: FederatedProcess) -> bool:
    """Whether the global variables alone are a complete model, the same for all clients."""
    model = process.model
    return not model.client_is_input and not any(spec.local for spec in model.specs)


def global_test(
    process: FederatedProcess, server_state: ServerState, examples: Mapping[str, np.ndarray]
) -> Judged:
    """Tests the one global model on a common test set.

    Args:
      process: A process whose model is the same for all clients.
      server_state: Its server state.
      examples: Columns [n, ...], n > 0, among them `y`, integers [n].

    Raises:
      ValueError: If there is no single global model, there are no examples, the
        model gives no logits, or a label is not one of its classes.
      KeyError: If the examples lack a column of the model.
    """
    if not has_global_model(process):
        local = [spec.path for spec in process.model.specs if spec.local]
        raise ValueError(
            "There is no single global model to test: each client has its own "
            f"{', '.join(local) or 'predictions, since the client is an input'}. Use local_tests."
        )
    if not len(examples["y"]):
        raise ValueError("At least one example is needed to test on, found 0.")
    state = ClientState(model=Weights([], []), work=(), rounds=np.int32(0))
    return judge(logits_of(process, server_state.weights, state, examples), examples["y"])
