"""Membership inference with shadow models: did a client train on an example?

R. Shokri, M. Stronati, C. Song, V. Shmatikov: Membership Inference Attacks Against Machine Learning
Models (2017), as WAFFLe (2020, §4.4) turns it on a client of federated learning.

The attacker knows the method, its settings and the network, and owns data from the victims'
distribution. He lets clients of his own (*shadows*) train in the same way, and reconstructs their
models from what they would have sent, as he does with a victim's (`attacker.Attacker`). Of these he
knows the members, so a classifier learns from their outputs to tell members from others; it is
then asked about the victim's. Members and others are given in equal numbers, so chance is 0.5.

As in the paper the classifier has one hidden layer of 64 units. It sees what a model says of an
example: the logarithms of all classes' probabilities in descending order, that of the right class,
and whether this is the most likely one. There is one for all classes, not one each: sorted, the
outputs of classes are alike, and each alone has few examples.
"""

import warnings
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import scipy.special
import threadpoolctl
from sklearn import metrics
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tff_het import seeding
from tff_het.attacks.attacker import Attacker, Examples
from tff_het.attacks.observation import Observation

_UNITS = 64
_EPOCHS = 100
# Below this a logarithm says "never": confident models differ by hundreds of nats there.
_LOWEST = -30.0


class Target(NamedTuple):
    """A client under attack.

    Attributes:
      seen: What is observed of it.
      members: Examples that it trained on, columns [n, ...].
      others: As many that it did not, from the same distribution.
    """

    seen: Observation
    members: Examples
    others: Examples


class Outputs(NamedTuple):
    """What the attacker's model of a client says, of as many members as others.

    Attributes:
      logits: float64 [2n, classes].
      labels: int [2n].
      member: bool [2n].
    """

    logits: np.ndarray
    labels: np.ndarray
    member: np.ndarray

    @property
    def right(self) -> np.ndarray:
        """Whether the most likely class is the right one, bool [2n]."""
        return self.logits.argmax(axis=-1) == self.labels

    def log_probabilities(self) -> np.ndarray:
        """Returns those of all classes, [2n, classes].

        Raises:
          ValueError: If a logit is not finite.
        """
        if not np.isfinite(self.logits).all():
            raise ValueError(
                "A model under attack has outputs that are not finite: it has diverged."
            )
        return scipy.special.log_softmax(self.logits, axis=-1)


class Success(NamedTuple):
    """Success of a membership inference attack; members count as positive.

    Attributes:
      accuracy: In [0, 1]; 0.5 is chance.
      f1: In [0, 1].
    """

    accuracy: float
    f1: float


def ask(attacker: Attacker, target: Target) -> Outputs:
    """Reconstructs a client's model and asks it about members and others.

    Raises:
      ValueError: If there are not equally many, or none.
    """
    sizes = [len(examples["y"]) for examples in (target.members, target.others)]
    if sizes[0] != sizes[1] or not sizes[0]:
        raise ValueError(
            "Chance is 0.5 where there are as many members as others, one or more; found "
            f"{sizes[0]} and {sizes[1]}."
        )
    model, both = attacker.reconstruct(target.seen), (target.members, target.others)
    return Outputs(
        np.concatenate([attacker.logits(model, examples) for examples in both]),
        np.concatenate([examples["y"] for examples in both]),
        np.repeat([True, False], sizes),
    )


def infer(shadows: Sequence[Outputs], victims: Sequence[Outputs], *, seed: int) -> list[Success]:
    """Learns from shadow models to infer membership, and does so for each victim.

    Args:
      shadows: Of the attacker's own clients, one or more.
      victims: Of those under attack; their membership is used to count successes alone.
      seed: Of the classifier.

    Returns:
      For each victim.

    Raises:
      ValueError: If there are no shadows, or a model's outputs are not finite.
    """
    if not shadows:
        raise ValueError("The attack learns from shadow models: give at least one, found 0.")
    x = np.concatenate([_features(shadow) for shadow in shadows])
    y = np.concatenate([shadow.member for shadow in shadows])
    random_state = seeding.integer_seed(seed, seeding.ATTACK)
    network = MLPClassifier((_UNITS,), max_iter=_EPOCHS, random_state=random_state)
    classifier = make_pipeline(StandardScaler(), network)
    # On several threads sums have another order each time; the number of epochs is fixed.
    with threadpoolctl.threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        classifier.fit(x, y)
        found = []
        for victim in victims:
            of = (victim.member, classifier.predict(_features(victim)))
            found.append(Success(float(metrics.accuracy_score(*of)), float(metrics.f1_score(*of))))
    return found


def _features(outputs: Outputs) -> np.ndarray:
    """What the classifier sees of each example, [2n, classes + 2]."""
    log_p = np.maximum(outputs.log_probabilities(), _LOWEST)
    of_label = log_p[np.arange(len(log_p)), outputs.labels]
    return np.column_stack([-np.sort(-log_p, axis=-1), of_label, outputs.right])
