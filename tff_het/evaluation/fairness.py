"""Fairness: how well representations reveal protected attributes, and how good predictions are.

Areas under the ROC curve (AUC) of the predictions, of the adversaries that were trained with the
network, and of *post-fit* classifiers that are fitted afterwards on the representations, so that a
bad adversary is not taken for a fair representation (Liang et al. 2019, §3.3).
"""

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import threadpoolctl
from sklearn import metrics
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tff_het import seeding
from tff_het.clients import Population
from tff_het.evaluation.judging import own_predictions
from tff_het.learning.client_work import ClientState
from tff_het.learning.process import FederatedProcess, ServerState
from tff_het.models.adversary import ADVERSARY, REPRESENTATION

_SPLITS = ("train", "validation", "test")
# Enough for the loss to settle on a few hundred rows; more only learns these by heart.
_MLP_EPOCHS = 100


class Scored(NamedTuple):
    """One client's examples as its own model sees them.

    Attributes:
      labels: int [n], 0 or 1.
      scores: float [n], the logit of class 1 minus that of class 0.
      protected: By attribute, int [n], 0 or 1.
      adversary: By attribute, float [n], the adversary's logit that it is 1.
      representation: float [n, units].
    """

    labels: np.ndarray
    scores: np.ndarray
    protected: Mapping[str, np.ndarray]
    adversary: Mapping[str, np.ndarray]
    representation: np.ndarray

    @property
    def correct(self) -> np.ndarray:
        """bool [n], whether the more likely class is the right one."""
        return (self.scores > 0) == (self.labels == 1)


class Auc(NamedTuple):
    """An area under the ROC curve over clients.

    Attributes:
      pooled: Of all clients' examples together; None where that is not determined.
      mean: Mean of the clients' own, without those whose examples all have the same truth; None
        where no client has one.
    """

    pooled: float | None
    mean: float | None


def score(
    process: FederatedProcess,
    server_state: ServerState,
    population: Population,
    client_state: Callable[[int], ClientState],
    attributes: Sequence[str],
    split: str = "test",
    *,
    seed: int = 0,
) -> list[Scored]:
    """Returns what every client's own model gives for the client's own examples.

    Args:
      process: Of a model with an adversary (`models.adversary`) and two classes.
      server_state: Its server state.
      population: The clients.
      client_state: A client's index -> its stored state, or its initial one.
      attributes: The protected columns, in the adversary's order.
      split: 'train', 'validation' or 'test'.
      seed: Of the run, for what adapting draws.

    Raises:
      ValueError: If there is no such split, or the model gives something else.
    """
    if split not in _SPLITS:
        raise ValueError(f"split must be one of {', '.join(_SPLITS)}; found {split!r}.")
    specs = process.output_specs()
    if missing := [name for name in (REPRESENTATION, ADVERSARY) if name not in specs]:
        raise ValueError(
            f"The model has no output {' and no '.join(missing)}: it was made without an "
            "adversary. Attach one with `models.adversary.attach`."
        )
    widths = {name: specs[name].shape[-1] for name in ("logits", ADVERSARY)}
    if widths != {"logits": 2, ADVERSARY: len(attributes)}:
        raise ValueError(
            f"Expected two classes and an adversary for {', '.join(attributes)}; found outputs of "
            f"widths {widths}."
        )
    scored = []
    for index, client in enumerate(population):
        examples = getattr(client, split)
        columns = {name: examples[name] for name in process.model.example_spec}
        state = client_state(index)
        outputs = own_predictions(
            process, server_state, state, population, index, columns, seed=seed
        )
        logits, adversary = outputs["logits"], outputs[ADVERSARY]
        scored.append(
            Scored(
                labels=np.asarray(examples["y"]),
                scores=logits[:, 1] - logits[:, 0],
                protected={name: np.asarray(examples[name]) for name in attributes},
                adversary={name: adversary[:, k] for k, name in enumerate(attributes)},
                representation=_flat(outputs[REPRESENTATION]),
            )
        )
    return scored


def _flat(x: np.ndarray) -> np.ndarray:
    """[n, ...] as [n, numbers of one], also where n is 0."""
    return x.reshape(len(x), math.prod(x.shape[1:]))


def auc(truths: Sequence[np.ndarray], scores: Sequence[np.ndarray]) -> Auc:
    """Returns the area under the ROC curve of all clients together, and their mean.

    Where clients have models of their own, only the mean is free of differences of scale between
    their scores.

    Args:
      truths: For each client, int [n], 0 or 1; n may be 0.
      scores: For each client, float [n], higher for 1.

    Raises:
      ValueError: If there are not as many scores as truths of each client.
    """
    found = [[len(one) for one in side] for side in (truths, scores)]
    if found[0] != found[1]:
        raise ValueError(
            "Expected as many scores as truths of each client; found lengths "
            f"{found[0]} and {found[1]}."
        )
    own = [
        float(metrics.roc_auc_score(truth, score))
        for truth, score in zip(truths, scores, strict=True)
        if _has_both(truth)
    ]
    together = np.concatenate([np.zeros(0, int), *truths])
    pooled = None
    if _has_both(together):
        pooled = float(metrics.roc_auc_score(together, np.concatenate(list(scores))))
    return Auc(pooled, float(np.mean(own)) if own else None)


def _has_both(truth: np.ndarray) -> bool:
    return len(np.unique(truth)) > 1


def logistic(seed: int) -> Any:
    """Returns a logistic regression on standardised representations, not yet fitted."""
    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000, random_state=seed))


def fresh_mlp(seed: int) -> Any:
    """Returns an MLP [32, 32, 32] with ReLU on standardised ones, as the adversary is."""
    network = MLPClassifier((32, 32, 32), batch_size=32, max_iter=_MLP_EPOCHS, random_state=seed)
    return make_pipeline(StandardScaler(), network)


def post_fit(
    representations: Sequence[np.ndarray],
    truths: Sequence[np.ndarray],
    classifier: Callable[[int], Any],
    *,
    seed: int,
) -> float | None:
    """Fits a classifier on one half of each client's representations, and tests it on the other.

    One for each client, also where all clients share an encoder, so that methods are compared by
    classifiers that saw equally many examples. The representations should be of examples that the
    network was not trained on. Halves are drawn at random, with equal shares of both values.

    Args:
      representations: For each client, float [n, units].
      truths: For each client, the attribute, int [n], 0 or 1.
      classifier: integer seed -> an unfitted classifier of scikit-learn, such as `logistic`.
      seed: Of halves and classifiers.

    Returns:
      The mean AUC over clients, without those of whose halves one has the attribute's one value
      alone; None where no client has one.
    """
    found = []
    # On several threads sums have another order each time.
    with threadpoolctl.threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # The number of epochs is fixed.
        for client, (x, truth) in enumerate(zip(representations, truths, strict=True)):
            rng = seeding.generator(seed, seeding.EVALUATION, client)
            fitting, testing = _halves(truth, rng)
            if not (_has_both(truth[fitting]) and _has_both(truth[testing])):
                continue
            model = classifier(seeding.integer_seed(seed, seeding.EVALUATION, client))
            model.fit(x[fitting], truth[fitting])
            scores = model.predict_proba(x[testing])[:, 1]
            found.append(metrics.roc_auc_score(truth[testing], scores))
    return float(np.mean(found)) if found else None


def _halves(truth: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Places of two halves; of each value the first has as many as the second, or one more."""
    order = rng.permutation(len(truth))
    order = order[np.argsort(truth[order], kind="stable")]
    first = np.zeros(len(truth), bool)
    for value in np.unique(truth):
        of_value = order[truth[order] == value]
        first[of_value[: (len(of_value) + 1) // 2]] = True
    return np.flatnonzero(first), np.flatnonzero(~first)
