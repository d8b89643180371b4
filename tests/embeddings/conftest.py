"""Small SavedModels with the interfaces of YamNet and of image networks, and calls by hand."""

import numpy as np
import pytest
import tensorflow as tf

HOP, PATCH, WINDOW = 7680, 15360, 15600


class SmallYamNet(tf.Module):
    """Patches, padding and outputs as YamNet has them; every sample of a patch counts.

    In whole numbers below 2^24, which float32 adds without rounding in whatever order: which clips
    share a call must then change no bit, on any processor.
    """

    def __init__(self):
        super().__init__()
        rng = np.random.default_rng(0)
        self.shape = tf.constant(rng.choice([-3, -1, 1, 3], WINDOW), tf.float32)
        self.mixing = tf.constant(rng.integers(-2, 3, size=(120, 1024)), tf.float32)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32)])
    def __call__(self, waveform):
        waveform = tf.round(64.0 * tf.clip_by_value(waveform, -1.0, 1.0))
        more = tf.maximum(0, -((WINDOW - tf.size(waveform)) // HOP))
        padded = tf.pad(waveform, [[0, WINDOW + HOP * more - tf.size(waveform)]])
        patches = tf.signal.frame(padded, WINDOW, HOP) * self.shape
        sums = tf.reduce_sum(tf.reshape(patches, [-1, 120, 130]), axis=2)
        mixed = tf.cast(sums @ self.mixing, tf.int32)
        embeddings = tf.cast(mixed % 2047, tf.float32) / 1024.0 - 1.0
        return embeddings[:, :521], embeddings, tf.zeros([96, 64])


class SmallImageNetwork(tf.Module):
    def __init__(self):
        super().__init__()
        rng = np.random.default_rng(1)
        self.kernel = tf.constant(rng.normal(size=(8 * 8 * 3, 5)), tf.float32)

    @tf.function(input_signature=[tf.TensorSpec([None, 8, 8, 3], tf.float32)])
    def __call__(self, images):
        return tf.reshape(images, [-1, 8 * 8 * 3]) @ self.kernel


@pytest.fixture(scope="session")
def yamnet(tmp_path_factory) -> str:
    """A folder with a small network of YamNet's interface."""
    folder = str(tmp_path_factory.mktemp("yamnet"))
    tf.saved_model.save(SmallYamNet(), folder)
    return folder


@pytest.fixture(scope="session")
def image_module(tmp_path_factory) -> str:
    """A folder with a small network that takes images of 8 x 8."""
    folder = str(tmp_path_factory.mktemp("image"))
    tf.saved_model.save(SmallImageNetwork(), folder)
    return folder


@pytest.fixture(scope="session")
def by_hand():
    """Calls YamNet on one clip: its largest values over the full patches, float32 [1024]."""

    def call(loaded, waveform: np.ndarray) -> np.ndarray:
        if len(waveform) < PATCH:
            waveform = np.pad(waveform, (0, PATCH - len(waveform)))
        _, embeddings, _ = loaded(waveform)
        return embeddings.numpy()[: 1 + (len(waveform) - PATCH) // HOP].max(axis=0)

    return call
