"""From a config to how clients and server train: optimizers, local training, losses."""

import tensorflow as tf

from experiments.run.config import RunConfig
from tff_het import kinds
from tff_het.backend.names import tff
from tff_het.learning import acquisition
from tff_het.learning.augmentation import crop_and_flip
from tff_het.learning.local_training import LocalTraining
from tff_het.models import objectives
from tff_het.models.model import PerExample

_OPTIMIZERS = {
    "sgd": tff.learning.optimizers.build_sgdm,
    "adam": tff.learning.optimizers.build_adam,
    "yogi": tff.learning.optimizers.build_yogi,
}


def local_training(config: RunConfig) -> LocalTraining:
    """Returns the settings of the clients' local SGD."""
    training = config.training
    rate, decay = training.client_learning_rate, training.learning_rate_decay
    momentum = [training.client_momentum] if training.client_momentum else []  # Of sgd alone.

    def decayed(round_num: tf.Tensor) -> tf.Tensor:
        return rate / (1.0 + decay * tf.cast(round_num, tf.float32))

    return LocalTraining(
        optimizer=_OPTIMIZERS[training.client_optimizer](rate, *momentum),
        batch_size=training.batch_size,
        epochs=training.local_epochs,
        steps=training.local_steps,
        at_most_one_pass=training.at_most_one_pass,
        shuffle=training.shuffle,
        augment=crop_and_flip() if training.augment else None,
        weight_decay=training.weight_decay,
        clip_norm=training.clip_norm,
        learning_rate=decayed if decay else None,
        opponent_steps=config.method.adversary_steps or 1,
        acquisition=_acquisition(config),
    )


def _acquisition(config: RunConfig) -> acquisition.Acquisition | None:
    training = config.training
    if training.acquisition is None:
        return None
    settings = {
        "size": training.acquisition_size,
        "per_round": training.acquisitions_per_round,
        "pool_size": training.pool_size,
        "kept_per_class": training.kept_per_class,
        "dropout_samples": training.dropout_samples,
    }
    given = {name: value for name, value in settings.items() if value is not None}
    return acquisition.Acquisition(training.acquisition, **given)


def loss(config: RunConfig, num_classes: int) -> PerExample:
    """Returns what is minimised, per example; raises ValueError if a class has no weight."""
    weights = config.method.class_weights
    if weights is None:
        return getattr(objectives, config.method.loss)
    if len(weights) != num_classes:
        raise ValueError(
            f"--class_weights needs a positive number for each of the {num_classes} classes, such "
            f"as {','.join(['1'] * (num_classes - 1) + ['50'])}; found {kinds.text(weights)}."
        )
    return objectives.class_weighted(list(weights))


def server_optimizer(config: RunConfig):
    """Returns the server's optimizer, or None for plain averaging."""
    name = config.training.server_optimizer
    return name and _OPTIMIZERS[name](config.training.server_learning_rate)
