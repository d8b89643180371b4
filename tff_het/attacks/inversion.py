"""Model inversion: what input does a model take for a class with the greatest confidence?

M. Fredrikson, S. Jha, T. Ristenpart: Model Inversion Attacks that Exploit Confidence Information
and Basic Countermeasures (2015), Algorithm 1, on a client's model as an attacker has it.

| paper (Algorithm 1)          | here                                                          |
|------------------------------|---------------------------------------------------------------|
| c(x) = 1 - f_label(x) + aux  | -log f_label(x) + `smoothness` * total variation of x         |
| alpha, lambda                | `steps`, `rate`                                               |
| PROCESS                      | values are kept in [0, 1]                                     |
| beta, gamma                  | none: all steps are made                                      |
| the x of the lowest cost     | the same                                                      |

1 - f has no slope where the model is sure of another class, -log f has, and both are lowest at the
same inputs. The paper starts from zeros; so does this without `noise`. A step has the length `rate`
in the largest value rather than being the gradient's, whose length says how sure a model is.
"""

import dataclasses
from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from tff_het import seeding
from tff_het.attacks.attacker import Examples, Reconstructed
from tff_het.learning.process import FederatedProcess
from tff_het.models.model import ClientContext, Variables
from tff_het.numbers import INT32, Number

_LARGEST_FILTER = 11  # Of SSIM, as Wang et al. (2004) have it.


@dataclasses.dataclass(frozen=True)
class Settings:
    """Settings of the search for an input.

    Attributes:
      steps: How many.
      rate: By how much the value that changes most is changed in a step.
      smoothness: What the mean absolute difference of neighbours in an image costs; the only
        thing that the attacker is taken to know of images.
      noise: The inputs begin with values drawn between 0 and this.
    """

    steps: int
    rate: float
    smoothness: float = 0.0
    noise: float = 0.0

    def __post_init__(self):
        Number(1, INT32, is_whole=True).check("steps", self.steps)
        Number(low=0, above=True).check("rate", self.rate)
        Number(low=0).check("smoothness", self.smoothness)
        Number(0, 1).check("noise", self.noise)


class Inversion:
    """Looks for the inputs that models of a process are most sure of."""

    def __init__(self, process: FederatedProcess, settings: Settings):
        """Initialises it; the search is compiled at the first call.

        Raises:
          ValueError: If the model reads anything but `x`, or `x` does not hold real numbers.
        """
        self._model, self._settings = process.model, settings
        columns = {name: spec for name, spec in self._model.example_spec.items() if name != "y"}
        if set(columns) != {"x"}:
            raise ValueError(
                "Inversion makes up the column x, of models that read nothing else; found the "
                f"columns {', '.join(self._model.example_spec)}."
            )
        self._spec = columns["x"]
        if not self._spec.dtype.is_floating:
            raise ValueError(
                "Inversion follows the slope of the model in its input, so x has to hold real "
                f"numbers in [0, 1]; found {self._spec.dtype.name}. Divide images by 255, which "
                "is what the model's first layer would do."
            )
        if settings.smoothness and len(self._spec.shape) != 4:
            raise ValueError(
                "Smoothness is one of images [height, width, channels]; found x of shape "
                f"{self._spec.shape[1:]}."
            )
        self._search = tf.function(self._steps, autograph=False)

    def invert(self, model: Reconstructed, classes: Sequence[int], *, seed: int) -> np.ndarray:
        """Returns an input for each class, float32 [classes, ...], in [0, 1].

        Args:
          model: A client's model as the attacker has it.
          classes: Which.
          seed: Of the noise that the inputs begin with.

        Raises:
          ValueError: If there are no classes.
        """
        if not len(classes):
            raise ValueError("At least one class is needed to look for, found 0.")
        variables = Variables(model.weights, model.state.model)
        found = self._search(
            tf.nest.map_structure(tf.convert_to_tensor, variables),
            tf.constant(list(classes), tf.int32),
            tf.constant(model.client, tf.int32),
            tf.convert_to_tensor(model.state.rounds, tf.int32),
            tf.constant(seeding.stateless_seed(seed, seeding.ATTACK), tf.int32),
        )
        return found.numpy()

    def _steps(self, variables, classes, client, rounds, seed) -> tf.Tensor:
        settings = self._settings
        context = ClientContext(client, tf.shape(classes)[0], rounds)

        def cost(x: tf.Tensor) -> tf.Tensor:  # [classes]
            outputs = self._model.predict(variables, {"x": x}, context, seed, False)
            value = tf.nn.sparse_softmax_cross_entropy_with_logits(classes, outputs["logits"])
            if settings.smoothness:
                size = float(np.prod(x.shape[1:]))
                value += settings.smoothness * tf.image.total_variation(x) / size
            return value

        def step(index, x, best, lowest):
            with tf.GradientTape() as tape:
                tape.watch(x)
                value = cost(x)
            slope = tape.gradient(value, x)
            best, lowest = _better(x, value, best, lowest)
            largest = tf.reduce_max(tf.abs(slope), axis=range(1, len(x.shape)), keepdims=True)
            moved = x - settings.rate * tf.math.divide_no_nan(slope, largest)
            return index + 1, tf.clip_by_value(moved, 0.0, 1.0), best, lowest

        shape = tf.concat([tf.shape(classes), self._spec.shape[1:]], axis=0)
        x = settings.noise * tf.random.stateless_uniform(shape, seed)
        x = tf.ensure_shape(x, [None, *self._spec.shape[1:]])
        nothing = tf.fill(tf.shape(classes), np.float32(np.inf))
        _, x, best, lowest = tf.while_loop(
            lambda index, *_: index < settings.steps, step, (0, x, x, nothing)
        )
        return _better(x, cost(x), best, lowest)[0]


def class_means(examples: Examples) -> dict[int, np.ndarray]:
    """Returns the mean example [...] of each class that is among them, by label, float64.

    Args:
      examples: The victim's, columns [n, ...], n > 0.
    """
    y = np.asarray(examples["y"])
    return {
        int(label): np.asarray(examples["x"])[y == label].mean(axis=0, dtype=np.float64)
        for label in np.unique(y)
    }


def similarity(reconstruction: np.ndarray, mean: np.ndarray) -> float:
    """Returns the structural similarity (Wang et al. 2004) with a class's mean, in [-1, 1].

    Args:
      reconstruction: One image [height, width, channels], in [0, 1].
      mean: As `class_means` gives it, of the same shape.

    Raises:
      ValueError: If shapes differ, or are not those of images.
    """
    if mean.ndim != 3 or reconstruction.shape != mean.shape:
        raise ValueError(
            "Expected images of one shape [height, width, channels], found "
            f"{reconstruction.shape} and {mean.shape}."
        )
    images = (tf.constant(image, tf.float32) for image in (reconstruction, mean))
    size = min(_LARGEST_FILTER, *mean.shape[:2])
    return float(tf.image.ssim(*images, max_val=1.0, filter_size=size))


def _better(x, value, best, lowest) -> tuple[tf.Tensor, tf.Tensor]:
    """The inputs [classes, ...] of the lowest cost [classes] so far, and that cost."""
    lower = value < lowest
    place = tf.reshape(lower, [-1] + [1] * (len(x.shape) - 1))
    return tf.where(place, x, best), tf.where(lower, value, lowest)
