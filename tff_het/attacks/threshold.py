"""TensorFlow Privacy's default test for membership inference: one threshold on an example's loss.

How well does a threshold on the cross entropy tell members from others, over all thresholds? It
needs no shadow models, and is no attack by itself, since nobody tells the attacker the threshold:
it says what the best of those could do.

The numbers are those of `run_attacks` with `AttackType.THRESHOLD_ATTACK`, which is not imported: it
is in no release of tensorflow-privacy that TFF 0.87 takes, but in tensorflow-empirical-privacy 0.1,
which works with scikit-learn before 1.7 alone. A test compares both where that is installed. Losses
are exact here; there probabilities below 1e-8 count as that.
"""

from typing import NamedTuple

import numpy as np
from sklearn import metrics

from tff_het.attacks.membership import Outputs

# Low, since acting on a false positive is costly.
LOW_FALSE_POSITIVE_RATE = 0.01


class Threshold(NamedTuple):
    """Accuracy of thresholds that separate members from non-members.

    Attributes:
      auc: Area under the ROC curve; 0.5 is chance.
      true_positives: Share of members that are found where at most `LOW_FALSE_POSITIVE_RATE` of
        others are taken for members; chance finds as many of both.
    """

    auc: float
    true_positives: float


def on_losses(outputs: Outputs) -> Threshold:
    """Tests how well losses tell a client's members from others.

    Raises:
      ValueError: If outputs are not finite.
    """
    log_p = outputs.log_probabilities()
    of_label = log_p[np.arange(len(log_p)), outputs.labels]
    false_positives, true_positives, _ = metrics.roc_curve(
        outputs.member,
        of_label,
        drop_intermediate=False,  # Losses may be tied.
    )
    allowed = false_positives <= LOW_FALSE_POSITIVE_RATE
    return Threshold(
        float(metrics.auc(false_positives, true_positives)), float(true_positives[allowed].max())
    )
