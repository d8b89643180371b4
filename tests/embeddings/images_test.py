"""Images: what files and arrays become, and what networks make of them."""

import dataclasses
import io
import subprocess
import sys

import numpy as np
import PIL.Image
import pytest
import tensorflow as tf

pytest.importorskip("tensorflow_hub")

from embeddings import images
from embeddings.examples import UnusableError
from embeddings.sources import RegisteredDataset


def picture(height=6, width=4, channels=3, seed=0):
    rng = np.random.default_rng(seed)
    return rng.integers(0, 256, (height, width, channels), dtype=np.uint8)


def saved(form: str, *, palette: bool = False) -> bytes:
    image, buffer = PIL.Image.fromarray(picture(40, 40)), io.BytesIO()
    (image.quantize(16) if palette else image).save(buffer, form)
    return buffer.getvalue()


@pytest.mark.parametrize("form", ["GIF", "BMP"])
def test_other_formats_are_read(form):
    assert images.decode(saved(form)).shape == (40, 40, 3)
    grey = io.BytesIO()
    PIL.Image.fromarray(picture(40, 40)[..., 0]).save(grey, "BMP")
    np.testing.assert_array_equal(images.decode(grey.getvalue())[..., 1], picture(40, 40)[..., 0])


@pytest.mark.parametrize("channels", [1, 3])
def test_png_is_kept_and_grey_becomes_rgb(channels):
    image = picture(channels=channels)
    decoded = images.decode(tf.io.encode_png(image).numpy())
    expected = np.broadcast_to(image, (6, 4, 3))
    np.testing.assert_array_equal(decoded, expected)
    np.testing.assert_array_equal(images.decode(image), expected)


def test_jpeg_is_about_the_same():
    image = np.full((16, 16, 3), (200, 100, 50), np.uint8)
    decoded = images.decode(tf.io.encode_jpeg(image, quality=95).numpy())
    np.testing.assert_allclose(decoded, image, atol=4)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "empty"),
        (b"not an image", "undecodable"),
        (tf.io.encode_png(picture(40, 40)).numpy()[:900], "undecodable"),
        (saved("GIF")[:-20], "truncated"),
        (saved("BMP", palette=True), "undecodable"),
    ],
)
def test_broken_files_are_unusable(content, reason):
    with pytest.raises(UnusableError) as error:
        images.decode(content)
    assert error.value.reason == reason


@pytest.mark.parametrize("array", [np.zeros((4, 4, 3)), np.zeros((4, 4), np.uint8)])
def test_arrays_that_are_no_images_are_refused(array):
    with pytest.raises(ValueError, match="uint8"):
        images.decode(array)


def test_images_are_scaled_and_resized_bilinearly():
    image = np.array([[[0], [255]]], np.uint8).repeat(3, axis=2)  # Black, white.
    prepared = images.prepare([image], 4).numpy()
    assert prepared.shape == (1, 4, 4, 3) and prepared.dtype == np.float32
    np.testing.assert_allclose(prepared[0, :, :, 0], [[0, 0.25, 0.75, 1]] * 4, atol=1e-6)


def test_sizes_may_differ_within_a_batch():
    pictures = [picture(6, 4), picture(10, 12, seed=1), picture(8, 8, seed=2)]
    prepared = images.prepare(pictures, 8).numpy()
    for image, one in zip(pictures, prepared, strict=True):
        np.testing.assert_array_equal(images.prepare([image], 8).numpy()[0], one)
    np.testing.assert_allclose(prepared[2], pictures[2] / 255.0, atol=1e-6)


def test_a_module_is_called_or_has_a_signature(image_module, tmp_path):
    callable_one = tf.saved_model.load(image_module)

    class OnlySignature(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([None, 8, 8, 3], tf.float32)])
        def embed(self, images):
            return {"default": callable_one(images), "logits": images[:, 0, 0]}

    module = OnlySignature()
    module.kept = callable_one
    tf.saved_model.save(module, str(tmp_path), signatures={"default": module.embed})
    pictures = [picture(seed=seed) for seed in range(3)]
    embedded = images.ImageNetwork(image_module, 8).embed(pictures)
    assert embedded.shape == (3, 5) and embedded.dtype == np.float32
    np.testing.assert_array_equal(images.ImageNetwork(str(tmp_path), 8).embed(pictures), embedded)


@pytest.mark.parametrize(
    ("function", "found"),
    [(lambda x: x, "1, 8, 8, 3"), (lambda x: tf.zeros([1, 100_001]), "1, 100001")],
)
def test_a_module_without_vectors_is_refused(tmp_path, function, found):
    module = tf.Module()
    module.__call__ = tf.function(
        function, input_signature=[tf.TensorSpec([None, 8, 8, 3], tf.float32)]
    )
    tf.saved_model.save(module, str(tmp_path))
    with pytest.raises(ValueError, match=rf"feature vectors.*\[1, 1 to .*\({found}\)"):
        images.ImageNetwork(str(tmp_path), 8).embed([picture()])


@dataclasses.dataclass(frozen=True)
class FirstImages(RegisteredDataset):
    """A few hundred images of a data set: every 200th."""

    def items(self):
        return super().items()[::200]


@pytest.fixture(scope="module")
def cifar10_dir(data_dir, tmp_path_factory):
    if (data_dir / "cifar10" / "cifar-10-batches-bin").is_dir():
        return data_dir
    script = data_dir / "cifar10" / "make_cifar10_bin.py"
    if not script.is_file():
        pytest.skip("TFF_HET_DATA_DIR holds no cifar10/cifar-10-batches-bin")
    root = tmp_path_factory.mktemp("cifar10")
    subprocess.run([sys.executable, script, root / "cifar10"], check=True)
    return root


@pytest.mark.slow
def test_real_mobilenet_on_cifar10(data_dir, cifar10_dir, tmp_path):
    pytest.importorskip("apache_beam")
    from apache_beam.options.pipeline_options import PipelineOptions

    from embeddings import job
    from tff_het import datasets

    folder = data_dir / "mobilenet_v2" / "saved_model"
    if not folder.is_dir():
        pytest.skip("TFF_HET_DATA_DIR holds no mobilenet_v2/saved_model")
    network = images.ImageNetwork(str(folder), 96)
    source = FirstImages("cifar10", str(cifar10_dir))
    wanted = job.Job("image", network, source, str(tmp_path / "cifar10_embeddings"))
    assert job.run(wanted, PipelineOptions([])).summary.num_records == 300
    found = datasets.load("cifar10_embeddings", tmp_path)
    original = datasets.load("cifar10", cifar10_dir)
    assert found.class_names == original.class_names
    assert found.train["x"].shape == (250, 1280) and found.test["x"].shape == (50, 1280)
    np.testing.assert_array_equal(found.train["y"], original.train["y"][::200])
    resized = tf.image.resize(original.train["x"][:2000:200], [96, 96]) / 255
    by_hand = tf.saved_model.load(str(folder))(resized).numpy()
    np.testing.assert_allclose(found.train["x"][:10], by_hand, atol=1e-4)
