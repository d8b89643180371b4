"""Every random draw of a run follows from (seed, purpose, round, client, ...).

Outside of TensorFlow a draw uses `generator`; inside, `stateless_seed` feeds
`tf.random.stateless_*`. The global generators are never used, so neither the
order in which clients run nor a resume changes a result.
"""

import numpy as np

# The purposes keep the streams of one seed apart. Numbers are part of the
# results: never renumber, only append.
PARTITION = 1
VALIDATION = 2
MODEL = 3
COHORT = 4
CLIENT_WORK = 5
CLIENT_STATE = 6
SERVER = 7
EVALUATION = 8
DATA = 9
LOCAL_TEST = 10
ATTACK = 11
SERVER_EXAMPLES = 12
NOISE = 13
EVALUATED_CLIENTS = 14


def _sequence(seed: int, purpose: int, keys: tuple[int, ...]) -> np.random.SeedSequence:
    if seed < 0:
        raise ValueError(f"A seed must be a non-negative integer, found {seed}.")
    # As a spawn key, since entropy is padded with zeros: keys (5,) and (5, 0) would be the same.
    return np.random.SeedSequence(int(seed), spawn_key=(int(purpose), *(int(key) for key in keys)))


def generator(seed: int, purpose: int, *keys: int) -> np.random.Generator:
    """Returns NumPy's generator for one purpose.

    Args:
      seed: The seed of the run, non-negative.
      purpose: One of this module's constants.
      *keys: Non-negative integers that tell draws of one purpose apart, usually
        the round and the client's index.

    Raises:
      ValueError: If a number is negative.
    """
    return np.random.default_rng(_sequence(seed, purpose, keys))


def stateless_seed(seed: int, purpose: int, *keys: int) -> np.ndarray:
    """Returns an int32 [2] seed for `tf.random.stateless_*`; arguments as `generator`."""
    return _sequence(seed, purpose, keys).generate_state(2, np.uint32).view(np.int32)


def integer_seed(seed: int, purpose: int, *keys: int) -> int:
    """Returns a seed in [0, 2**31) for libraries that take one integer."""
    return int(_sequence(seed, purpose, keys).generate_state(1, np.uint32)[0] >> 1)
