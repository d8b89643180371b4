"""The BUILD files are those of the sources, and enforce ARCHITECTURE.md's table without Bazel."""

import ast
import os
import pathlib
import shutil
import subprocess
import sys

import build_files
import pytest

ROOT = pathlib.Path(__file__).parents[1]


def rules(text: str) -> list[tuple[str, dict]]:
    """The calls of a BUILD file, with those attributes that are literals."""
    found = []
    for node in ast.parse(text).body:
        assert isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
        attributes = {
            k.arg: ast.literal_eval(k.value)
            for k in node.value.keywords
            if not isinstance(k.value, ast.Call)
        }
        found.append((ast.unparse(node.value.func), attributes))
    return found


PROGRAM = """
from tff_het.partitions import iid

if __name__ == "__main__":
    iid.f()
"""


@pytest.fixture
def small(tmp_path) -> pathlib.Path:
    """A checkout of two rooms, a program and a test."""
    for path, text in {
        "tff_het/__init__.py": "",
        "tff_het/datasets/__init__.py": "from tff_het.datasets.digits import load\n",
        "tff_het/datasets/digits.py": "import os\nimport numpy as np\n",
        "tff_het/partitions/__init__.py": "",
        "tff_het/partitions/iid.py": "def f():\n    from tff_het import datasets\n",
        "experiments/__init__.py": "",
        "experiments/train.py": PROGRAM,
        "tests/conftest.py": "import pytest\n",
        "tests/iid_test.py": "from tff_het.partitions.iid import f\n",
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    return tmp_path


def write(root: pathlib.Path) -> None:
    for folder, text in build_files.Project(root).build_files().items():
        (root / folder / "BUILD").parent.mkdir(parents=True, exist_ok=True)
        (root / folder / "BUILD").write_text(text)


def differences(root: pathlib.Path) -> list[str]:
    return build_files.differences(root, build_files.Project(root).build_files())


def target(root: pathlib.Path, folder: str, name: str) -> tuple[str, dict]:
    (found,) = (
        (rule, attributes)
        for rule, attributes in rules((root / folder / "BUILD").read_text())
        if attributes.get("name") == name
    )
    return found


def test_they_are_what_the_script_writes():
    assert differences(ROOT) == [], "run python .ci/build_files.py"


def test_every_source_is_in_one_target():
    for top in ("embeddings", "experiments", "tests", "tff_het"):
        for folder in {path.parent for path in (ROOT / top).rglob("*.py")}:
            listed = [
                source
                for rule, attributes in rules((folder / "BUILD").read_text())
                for source in attributes.get("srcs", [])
                if rule in ("py_library", "pytest_test")
            ]
            assert sorted(listed) == sorted(path.name for path in folder.glob("*.py")), folder


def test_imports_are_dependencies(small):
    write(small)
    assert target(small, "tff_het/partitions", "iid") == (
        "py_library",
        {"name": "iid", "srcs": ["iid.py"], "deps": ["//tff_het/datasets"]},
    )
    assert target(small, "experiments", "train_lib")[1]["deps"] == [
        "//tff_het",
        "//tff_het/partitions",
        "//tff_het/partitions:iid",
    ]
    assert target(small, "experiments", "train") == (
        "py_binary",
        {"name": "train", "srcs": ["train.py"], "deps": [":experiments", ":train_lib"]},
    )
    assert target(small, "tests", "iid_test")[1]["deps"] == [
        ":conftest",
        "//tff_het",
        "//tff_het/partitions",
        "//tff_het/partitions:iid",
    ]
    assert target(small, "tff_het/datasets", "digits")[1]["deps"] == ["//.ci/bazel/packages:numpy"]


def test_visibility_is_the_table(small):
    write(small)
    seen = {
        folder: dict(rules((small / folder / "BUILD").read_text()))["package"]["default_visibility"]
        for folder in ("tff_het/datasets", "tff_het/partitions", "experiments")
    }
    tops = ("docs", "experiments", "tests")
    everywhere = {"//:__pkg__", *(f"//{top}:__subpackages__" for top in tops)}
    assert set(seen["experiments"]) == everywhere
    assert set(seen["tff_het/partitions"]) == everywhere | {
        "//tff_het/clients:__subpackages__",
        "//tff_het/partitions:__subpackages__",
    }
    assert set(seen["tff_het/datasets"]) == set(seen["tff_het/partitions"]) | {
        "//embeddings:__subpackages__",
        "//tff_het/datasets:__subpackages__",
    }


def test_what_changed_is_found(small):
    write(small)
    assert differences(small) == []
    (small / "tff_het/datasets/digits.py").write_text("import scipy\n")
    (small / "tff_het/partitions/new.py").write_text("")
    (small / "experiments/BUILD").unlink()
    shutil.copytree(small / "tff_het/partitions", small / "tests/left")
    for path in (small / "tests/left").glob("*.py"):
        path.unlink()
    assert differences(small) == [
        ".ci/bazel/packages/BUILD",
        "BUILD",
        "experiments/BUILD",
        "tests/left/BUILD",
        "tff_het/datasets/BUILD",
        "tff_het/partitions/BUILD",
    ]


def test_bazel_run_writes_the_checkout_that_it_is_called_in(small):
    environment = {**os.environ, "BUILD_WORKSPACE_DIRECTORY": str(small)}
    subprocess.run([sys.executable, ROOT / ".ci" / "build_files.py"], env=environment, check=True)
    assert differences(small) == []


def test_what_only_type_checkers_import_is_no_dependency(small):
    (small / "tff_het/datasets/digits.py").write_text(
        "import typing\nif typing.TYPE_CHECKING:\n    from tff_het.partitions import iid\n"
    )
    write(small)
    assert "deps" not in target(small, "tff_het/datasets", "digits")[1]


@pytest.mark.parametrize(
    ("path", "text", "message"),
    [
        ("tff_het/datasets/digits.py", "from tff_het.partitions import iid", "in a circle"),
        ("tff_het/attic/old.py", "", "tff_het/attic has no row"),
        ("tff_het/datasets/digits.py", "from . import files", "relative import"),
        ("tff_het/datasets/datasets.py", "", "two targets would be called datasets"),
    ],
)
def test_what_it_refuses(small, path, text, message):
    (small / path).parent.mkdir(exist_ok=True)
    (small / path).write_text(text)
    with pytest.raises(ValueError, match=message):
        build_files.Project(small).build_files()
