"""Decode audio files and embed whole clips with YamNet.

YamNet cuts a waveform of 16 kHz into patches of 96 spectra, one spectrum every 10 ms. Patch k
covers the samples [7680 k, 7680 k + 15360), and its last spectra reach 240 samples further. YamNet
embeds each patch by itself, and fills up the last one with silence.
"""

import dataclasses
import io
from collections.abc import Sequence
from typing import Any

import numpy as np
import soundfile
import soxr

from embeddings import modules
from embeddings.examples import UnusableError

SAMPLE_RATE = 16_000  # Hz
PATCH = 15_360  # Samples: 960 ms.
HOP = 7_680  # Samples from one patch to the next: 480 ms.
_WINDOW = 15_600  # Samples that a patch's spectra cover.
# Patches after each clip of a call that reach into the next clip and are dropped.
_GAP = -(-_WINDOW // HOP) - 1
_DIMENSION = 1024
_RATES = (1_000, 1_000_000)  # Accepted sample rates, Hz.
SHORT_CLIPS = ("pad", "skip")


def decode(content: bytes) -> np.ndarray:
    """Decodes an audio file that libsndfile reads (WAV, FLAC, OGG and more) to 16 kHz mono.

    Args:
      content: The file's bytes; any sample rate, any number of channels.

    Returns:
      The mean of the channels, float32 [samples], full scale -1..1.

    Raises:
      UnusableError: The file is empty, cut off or not audio, or has NaN or infinite samples.
    """
    if not content:
        raise UnusableError("empty", "the file has no bytes")
    try:
        with soundfile.SoundFile(io.BytesIO(content)) as file:
            rate, expected = file.samplerate, file.frames
            samples = file.read(dtype="float32", always_2d=True)
    except (soundfile.SoundFileError, RuntimeError, ValueError, OverflowError) as error:
        raise UnusableError("undecodable", str(error)) from error
    if len(samples) < expected or _is_cut_off(content):
        raise UnusableError("truncated", f"{len(content)} bytes, and there should be more")
    if not len(samples):
        raise UnusableError("empty", "the file has no samples")
    if not np.isfinite(samples).all():
        raise UnusableError("not_finite", "some samples are NaN or infinite")
    return _resampled(samples.mean(axis=1, dtype=np.float32), rate)


def _resampled(waveform: np.ndarray, rate: int) -> np.ndarray:
    if rate == SAMPLE_RATE:
        return waveform
    if not _RATES[0] <= rate <= _RATES[1]:  # A damaged header could fill the memory.
        raise UnusableError("undecodable", f"a sample rate of {rate} Hz, not {_RATES} Hz")
    return soxr.resample(waveform, rate, SAMPLE_RATE)


def _is_cut_off(content: bytes) -> bool:
    """Whether a WAV, AIFF or OGG file is shorter than it says; libsndfile does not check."""
    if content[:4] == b"OggS":
        last = content[content.rfind(b"OggS") :]  # Page: flags at 5, lengths of its parts from 27.
        length = 27 + last[26] + sum(last[27 : 27 + last[26]]) if len(last) > 26 else 27
        return len(last) < length or not last[5] & 4  # The last page says that it is.
    said = int.from_bytes(content[4:8], "little" if content[:4] == b"RIFF" else "big")
    is_stream = said >= 0xFFFFFF00  # The length was unknown, as in a pipe.
    return content[:4] in (b"RIFF", b"FORM") and not is_stream and said + 8 > len(content)


def num_patches(num_samples: int) -> int:
    """Number of full patches of a clip; a shorter clip is padded to one."""
    return 1 + max(0, num_samples - PATCH) // HOP


@dataclasses.dataclass(frozen=True)
class YamNet:
    """Embeds clips as the maximum of YamNet's embeddings over the full patches.

    Attributes:
      handle: The module.
      short_clips: What to do with clips below one patch: 'pad' with silence, or 'skip'.
      batch_size: Approximate patches per call. More are not faster on a CPU.
    """

    handle: str
    short_clips: str = "pad"
    batch_size: int = 64

    @property
    def settings(self) -> dict[str, Any]:
        """What the embeddings depend on, besides module and input."""
        return {"short_clips": self.short_clips, "sample_rate": SAMPLE_RATE}

    def decode(self, content: bytes | np.ndarray) -> np.ndarray:
        """Decodes a file, see `decode`; raises UnusableError for a short clip on "skip"."""
        if not isinstance(content, bytes):
            raise ValueError("YamNet embeds audio files; found arrays. Pass --input, a folder.")
        waveform = decode(content)
        if len(waveform) < PATCH and self.short_clips == "skip":
            raise UnusableError("too_short", f"{len(waveform)} samples, a patch has {PATCH}")
        return waveform

    def size(self, waveform: np.ndarray) -> int:
        """Number of patches that a clip takes of `batch_size`."""
        return num_patches(len(waveform)) + _GAP

    def padded(self, waveform: np.ndarray) -> bool:
        """Whether the clip is shorter than a patch."""
        return len(waveform) < PATCH

    def blank(self) -> np.ndarray:
        """Returns one patch of silence."""
        return np.zeros(PATCH, np.float32)

    def embed(self, waveforms: Sequence[np.ndarray]) -> np.ndarray:
        """Embeds clips.

        Args:
          waveforms: One float32 [samples] per clip.

        Returns:
          float32 [clips, 1024].
        """
        embedded = np.full((len(waveforms), _DIMENSION), -np.inf, np.float32)
        for pieces in self._calls(waveforms):
            joined = np.concatenate([piece for _, piece, _ in pieces])
            patches, begin = self._patches(joined), 0
            for clip, piece, count in pieces:
                largest = patches[begin : begin + count].max(axis=0)
                embedded[clip] = np.maximum(embedded[clip], largest)
                begin += len(piece) // HOP
        return embedded

    def _calls(self, waveforms: Sequence[np.ndarray]) -> list[list[tuple[int, np.ndarray, int]]]:
        """Groups clips into calls of (clip, its samples, its full patches).

        Long clips are cut. Each piece is filled up with silence, so that the next one begins at a
        patch of its own, after all samples that the last patch covers.
        """
        calls: list[list[tuple[int, np.ndarray, int]]] = [[]]
        room = self.batch_size
        for clip, waveform in enumerate(waveforms):
            total = num_patches(len(waveform))
            for first in range(0, total, self.batch_size):
                count = min(self.batch_size, total - first)
                samples = waveform[first * HOP : (first + count - 1) * HOP + _WINDOW]
                piece = np.zeros((count + _GAP) * HOP, np.float32)
                piece[: len(samples)] = samples
                if calls[-1] and count + _GAP > room:
                    calls.append([])
                    room = self.batch_size
                calls[-1].append((clip, piece, count))
                room -= count + _GAP
        return calls

    def _patches(self, waveform: np.ndarray) -> np.ndarray:
        """Runs YamNet; returns float32 [patches, 1024]."""
        outputs = modules.load(self.handle)(waveform)
        shapes = [tuple(output.shape) for output in outputs]
        if len(shapes) != 3 or shapes[1][1:] != (_DIMENSION,):
            raise ValueError(
                f"The module {self.handle!r} is not YamNet: expected scores, embeddings [patches,"
                f" {_DIMENSION}] and a spectrogram; found shapes {shapes}. Pass a handle of YamNet."
            )
        return outputs[1].numpy()
