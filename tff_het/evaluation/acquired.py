"""What clients have acquired so far, read off their states (Qian et al. 2019, Figure 3)."""

import numpy as np

from tff_het.learning import acquisition as acquiring
from tff_het.learning.client_work import ClientState
from tff_het.learning.works import Personal


def examples(
    acquisition: acquiring.Acquisition, state: ClientState, labels: np.ndarray
) -> list[np.ndarray]:
    """Returns the places among a client's training examples, int [m] for each acquisition.

    Args:
      acquisition: The settings that the client was trained with.
      state: The client's.
      labels: Those of its training examples, integers [n].
    """
    kept = state.work.rest if isinstance(state.work, Personal) else state.work
    pool = acquiring.draw(acquisition, labels, kept.seed).pool.numpy()
    taken = np.asarray(kept.taken)[: len(pool)]
    return [pool[taken == number] for number in range(1, taken.max(initial=0) + 1)]


def class_counts(
    acquisition: acquiring.Acquisition, state: ClientState, labels: np.ndarray, num_classes: int
) -> np.ndarray:
    """Returns their number by class, int64 [acquisitions, classes]; arguments as of `examples`."""
    acquired = examples(acquisition, state, labels)
    counts = [np.bincount(labels[places], minlength=num_classes) for places in acquired]
    return np.array(counts, np.int64).reshape(len(acquired), num_classes)
