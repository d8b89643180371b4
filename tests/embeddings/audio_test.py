"""Audio: what files become, which patches count, and that batches change nothing."""

import io

import numpy as np
import pytest
import tensorflow as tf

soundfile = pytest.importorskip("soundfile")
pytest.importorskip("soxr")

from embeddings import audio  # noqa: E402 (needs what may not be installed)
from embeddings.examples import UnusableError  # noqa: E402


def sine(rate, seconds=1.0, frequency=440.0):
    return 0.5 * np.sin(2 * np.pi * frequency * np.arange(int(rate * seconds)) / rate)


def encoded(samples, rate=16_000, **options) -> bytes:
    buffer = io.BytesIO()
    soundfile.write(buffer, samples, rate, **{"format": "WAV", **options})
    return buffer.getvalue()


def noise(rng, samples):
    return rng.uniform(-1, 1, samples).astype(np.float32)


@pytest.mark.parametrize("rate", [8_000, 16_000, 22_050, 44_100, 48_000])
@pytest.mark.parametrize("channels", [1, 2, 5])
def test_any_rate_and_channels_become_16_khz_mono(rate, channels):
    # The channels' mean is the sine: one has all of it, silent ones make it smaller.
    samples = np.zeros((rate, channels))
    samples[:, 0] = sine(rate)
    waveform = audio.decode(encoded(samples, rate))
    assert waveform.dtype == np.float32 and waveform.shape == (16_000,)
    middle = slice(2_000, -2_000)  # A resampler's filter needs a beginning.
    np.testing.assert_allclose(waveform[middle], sine(16_000)[middle] / channels, atol=2e-4, rtol=0)


@pytest.mark.parametrize(
    ("options", "tolerance"),
    [
        ({"format": "FLAC"}, 1e-4),
        ({"format": "OGG"}, 0.05),
        ({"format": "AIFF"}, 1e-4),
        ({"subtype": "PCM_U8"}, 0.01),
        ({"subtype": "PCM_24"}, 1e-6),
        ({"subtype": "FLOAT"}, 1e-7),
    ],
)
def test_formats(options, tolerance):
    waveform = audio.decode(encoded(sine(16_000), **options))
    np.testing.assert_allclose(waveform[500:15_500], sine(16_000)[500:15_500], atol=tolerance)


LONG_OGG = encoded(sine(160_000), format="OGG")
BROKEN = {
    "no bytes": (b"", "empty"),
    "no samples": (encoded(np.zeros(0)), "empty"),
    "text": (b"fname,label\n" * 100, "undecodable"),
    "header alone": (encoded(sine(16_000), format="FLAC")[:30], "undecodable"),
    "half a FLAC": (encoded(sine(16_000), format="FLAC")[:5_000], "undecodable"),
    "half a WAV": (encoded(sine(16_000))[:5_000], "truncated"),
    "half an AIFF": (encoded(sine(16_000), format="AIFF")[:5_000], "truncated"),
    "half an OGG": (LONG_OGG[: len(LONG_OGG) // 2], "truncated"),
    "an OGG without its last bytes": (encoded(sine(16_000), format="OGG")[:-10], "truncated"),
    "a rate of 1 Hz": (encoded(sine(16_000), rate=1), "undecodable"),
    "a rate of 2 GHz": (encoded(sine(16_000), rate=2_000_000_000), "undecodable"),
    "NaN": (encoded(np.array([0.0, np.nan] * 9_000), subtype="FLOAT"), "not_finite"),
    "infinite": (encoded(np.array([0.0, np.inf] * 9_000), subtype="DOUBLE"), "not_finite"),
}


@pytest.mark.parametrize(("content", "reason"), BROKEN.values(), ids=BROKEN)
def test_broken_files_are_unusable(content, reason):
    with pytest.raises(UnusableError) as error:
        audio.decode(content)
    assert error.value.reason == reason and error.value.detail


@pytest.mark.parametrize(
    ("samples", "patches"),
    [(1, 1), (15_359, 1), (15_360, 1), (23_039, 1), (23_040, 2), (30_719, 2), (160_000, 19)],
)
def test_full_patches(samples, patches):
    assert audio.num_patches(samples) == patches


def test_wav_of_unknown_length_is_read():
    content = bytearray(encoded(sine(16_000)))
    content[4:8] = content[40:44] = b"\xff" * 4
    assert len(audio.decode(bytes(content))) == 16_000


LENGTHS = [15_360, 15_599, 15_600, 15_601, 23_039, 23_040, 23_281, 92_400, 9_000, 400_000, 80_000]


@pytest.mark.parametrize("batch_size", [1, 2, 7, 64, 1000])
def test_embeds_as_by_hand_however_clips_share_a_call(yamnet, by_hand, batch_size):
    rng = np.random.default_rng(0)
    clips = [noise(rng, length) for length in LENGTHS]
    network = audio.YamNet(yamnet, batch_size=batch_size)
    loaded = tf.saved_model.load(yamnet)
    expected = np.stack([by_hand(loaded, clip) for clip in clips])
    np.testing.assert_array_equal(network.embed(clips), expected)


def test_what_is_behind_the_last_full_patch_does_not_count(yamnet):
    rng = np.random.default_rng(0)
    clip = noise(rng, 30_720 + 7_000)
    other = clip.copy()
    other[30_720 + 240 :] = 1.0  # Spectra look 240 samples further than the patch.
    network = audio.YamNet(yamnet)
    np.testing.assert_array_equal(network.embed([clip]), network.embed([other]))
    other[30_720 - 1] = -3.0
    assert np.abs(network.embed([clip]) - network.embed([other])).max() > 1e-3


def test_short_clips_are_padded_or_unusable(yamnet):
    content = encoded(sine(16_000, 0.5))
    padding = audio.YamNet(yamnet, "pad")
    clip = padding.decode(content)
    assert padding.padded(clip) and not padding.padded(np.zeros(15_360, np.float32))
    padded = np.concatenate([clip, np.zeros(15_360 - len(clip), np.float32)])
    np.testing.assert_array_equal(padding.embed([clip]), padding.embed([padded]))
    with pytest.raises(UnusableError) as error:
        audio.YamNet(yamnet, "skip").decode(content)
    assert error.value.reason == "too_short"
    assert len(audio.YamNet(yamnet, "skip").decode(encoded(sine(16_000, 0.96)))) == 15_360


def test_another_module_is_refused(tmp_path):
    module = tf.Module()
    module.__call__ = tf.function(
        lambda waveform: (waveform, waveform[None], waveform),
        input_signature=[tf.TensorSpec([None], tf.float32)],
    )
    tf.saved_model.save(module, str(tmp_path))
    with pytest.raises(ValueError, match="is not YamNet"):
        audio.YamNet(str(tmp_path)).embed([np.zeros(20_000, np.float32)])


@pytest.mark.slow
def test_real_yamnet_on_real_clips_is_as_by_hand(data_dir, by_hand):
    folder, clips = data_dir / "yamnet" / "saved_model", data_dir / "cough_audio" / "audio"
    if not (folder.is_dir() and clips.is_dir()):
        pytest.skip("TFF_HET_DATA_DIR holds no yamnet/saved_model and cough_audio/audio")
    network = audio.YamNet(str(folder))
    waveforms = [network.decode(path.read_bytes()) for path in sorted(clips.iterdir())[::8]]
    assert len(waveforms) > 40 and len({len(waveform) for waveform in waveforms}) > 3
    waveforms.append(np.concatenate(waveforms[:10]))  # Cut in pieces.
    embedded = network.embed(waveforms)
    loaded = tf.saved_model.load(str(folder))
    expected = np.stack([by_hand(loaded, waveform) for waveform in waveforms])
    assert np.abs(expected).max() > 1  # Something is to be seen.
    np.testing.assert_allclose(embedded, expected, atol=1e-5, rtol=0)
