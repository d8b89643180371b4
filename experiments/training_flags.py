"""From flags to how clients and server train: optimizers, local training, losses, factors."""

import tensorflow as tf
import tensorflow_federated as tff

from experiments.flags import method as method_flags
from tff_het.learning import acquisition
from tff_het.learning.augmentation import crop_and_flip
from tff_het.learning.client_work import LocalTraining
from tff_het.models import objectives
from tff_het.models.model import PerExample
from tff_het.numbers import Number

_FACTORS = Number(1, 1_000_000, is_whole=True)


def local_training() -> LocalTraining:
    """Returns the settings of the clients' local SGD.

    Raises:
      ValueError: If flags contradict each other.
    """
    rate = method_flags.CLIENT_LEARNING_RATE.value
    decay = method_flags.LEARNING_RATE_DECAY.value
    if method_flags.CLIENT_OPTIMIZER.value == "adam":
        if method_flags.CLIENT_MOMENTUM.value:
            raise ValueError("--client_momentum belongs to --client_optimizer=sgd.")
        optimizer = tff.learning.optimizers.build_adam(rate)
    else:
        momentum = method_flags.CLIENT_MOMENTUM.value or None
        optimizer = tff.learning.optimizers.build_sgdm(rate, momentum)

    def decayed(round_num: tf.Tensor) -> tf.Tensor:
        return rate / (1.0 + decay * tf.cast(round_num, tf.float32))

    return LocalTraining(
        optimizer=optimizer,
        batch_size=method_flags.BATCH_SIZE.value,
        epochs=method_flags.LOCAL_EPOCHS.value,
        steps=method_flags.LOCAL_STEPS.value,
        at_most_one_pass=method_flags.AT_MOST_ONE_PASS.value,
        shuffle=method_flags.SHUFFLE.value,
        augment=crop_and_flip() if method_flags.AUGMENT.value else None,
        weight_decay=method_flags.WEIGHT_DECAY.value,
        clip_norm=method_flags.CLIP_NORM.value,
        learning_rate=decayed if decay else None,
        opponent_steps=method_flags.ADVERSARY_STEPS.value or 1,
        acquisition=_acquisition(),
    )


def _acquisition() -> acquisition.Acquisition | None:
    settings = {
        "size": method_flags.ACQUISITION_SIZE,
        "per_round": method_flags.ACQUISITIONS_PER_ROUND,
        "pool_size": method_flags.POOL_SIZE,
        "kept_per_class": method_flags.KEPT_PER_CLASS,
        "dropout_samples": method_flags.DROPOUT_SAMPLES,
    }
    given = {name: flag for name, flag in settings.items() if flag.value is not None}
    function = method_flags.ACQUISITION.value
    if function is None:
        for flag in given.values():
            raise ValueError(
                f"--{flag.name} belongs to --acquisition: give one of "
                f"{', '.join(acquisition.NAMES)}."
            )
        return None
    if function == acquisition.RANDOM and "dropout_samples" in given:
        raise ValueError("--dropout_samples has no meaning for --acquisition=random.")
    return acquisition.Acquisition(function, **{name: flag.value for name, flag in given.items()})


def loss(num_classes: int) -> PerExample:
    """Returns what is minimised, per example.

    Raises:
      ValueError: If class weights do not fit the loss or the classes.
    """
    weights, name = method_flags.CLASS_WEIGHTS.value, method_flags.LOSS.value
    if weights is None:
        return {
            "cross_entropy": objectives.cross_entropy,
            "cross_entropy_of_softmax": objectives.cross_entropy_of_softmax,
        }[name]
    if name != "cross_entropy":
        raise ValueError(f"--class_weights weigh the cross entropy; found --loss={name}.")
    return objectives.class_weighted(_class_weights(weights, num_classes))


def _class_weights(texts: list[str], num_classes: int) -> list[float]:
    try:
        weights = list(map(Number(above=True, low=0), texts))
    except ValueError:
        weights = []
    if len(weights) != num_classes:
        raise ValueError(
            f"--class_weights needs a positive number for each of the {num_classes} classes, such "
            f"as {','.join(['1'] * (num_classes - 1) + ['50'])}; found {','.join(texts)}."
        )
    return weights


def server_optimizer():
    """Returns the server's optimizer, or None for plain averaging.

    Raises:
      ValueError: If only one of its name and its rate is given.
    """
    name, rate = method_flags.SERVER_OPTIMIZER.value, method_flags.SERVER_LEARNING_RATE.value
    if (name is None) != (rate is None):
        raise ValueError("--server_optimizer and --server_learning_rate are given together.")
    if name is None:
        return None
    build = {
        "sgd": tff.learning.optimizers.build_sgdm,
        "adam": tff.learning.optimizers.build_adam,
        "yogi": tff.learning.optimizers.build_yogi,
    }
    return build[name](rate)


def factors() -> dict[str, int] | None:
    """Returns how many factors layers have, by name; None where the method is to choose.

    Raises:
      ValueError: If the flag is not of that form.
    """
    texts = method_flags.FACTORS.value
    if texts is None:
        return None
    pairs = [text.partition("=") for text in texts]
    try:
        found = {layer: _FACTORS(number) for layer, _, number in pairs if layer}
    except ValueError:
        found = {}
    if not found or len(found) < len(pairs):
        raise ValueError(
            f"--factors needs {_FACTORS} for each layer that is factorised, such as "
            f"conv_1=25,conv_2=25; found {','.join(texts)}."
        )
    return found
