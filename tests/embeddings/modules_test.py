"""Modules: found or refused, and their fingerprints."""

import pathlib
import shutil

import pytest

pytest.importorskip("tensorflow_hub")

from embeddings import modules


def test_fingerprint_is_of_all_files_wherever_they_are(image_module, tmp_path):
    before = modules.fingerprint(image_module)
    copy = pathlib.Path(shutil.copytree(image_module, tmp_path / "copy"))
    assert modules.fingerprint(str(copy)) == before
    (copy / "assets").mkdir(exist_ok=True)
    (copy / "assets" / "classes.txt").write_text("cat")
    one = modules.fingerprint(str(copy))
    (copy / "assets" / "classes.txt").write_text("dog")
    assert len({before, one, modules.fingerprint(str(copy))}) == 3


def test_a_module_is_loaded_once(image_module):
    assert modules.load(image_module) is modules.load(image_module)


@pytest.mark.parametrize("use", [modules.fingerprint, modules.load, modules.feature_vector])
def test_what_is_no_module_is_refused(tmp_path, use):
    for path in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(ValueError, match=r"Cannot use the module .*folder with a SavedModel"):
            use(str(path))


def test_damaged_module_is_refused(image_module, tmp_path):
    copy = pathlib.Path(shutil.copytree(image_module, tmp_path / "copy"))
    (copy / "saved_model.pb").write_bytes(b"\x00" * 50)
    with pytest.raises(ValueError, match="Cannot use the module"):
        modules.load(str(copy))
