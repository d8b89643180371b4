"""Holds ARCHITECTURE.md's table: what each room may import."""

import ast
import pathlib

import pytest

ROOT = pathlib.Path(__file__).parents[1]

# Room -> rooms that it may import. `quiet` and `seeding` belong to nobody and serve all.
MAY_IMPORT = {
    "datasets": set(),
    "partitions": {"datasets"},
    "clients": {"datasets", "partitions"},
    "models": set(),
    "learning": {"models"},
    "methods": {"learning", "models"},
    "evaluation": {"clients", "models", "learning"},
    "attacks": {"models", "learning", "evaluation"},
    "simulation": {"clients", "learning", "models", "evaluation"},
}
# Where TensorFlow Federated may be imported.
TFF_ROOMS = {"learning", "simulation"}
TFF_FILES = {
    "models/reconstruction.py",
    "datasets/femnist.py",
    "evaluation/communication.py",
}
SHARED = {"quiet", "seeding"}


def imported(path: pathlib.Path) -> set[str]:
    """Returns the dotted names that a file imports, wherever in it."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


LIBRARY = sorted((ROOT / "tff_het").rglob("*.py"))


@pytest.mark.parametrize("path", LIBRARY, ids=lambda p: str(p.relative_to(ROOT)))
def test_rooms_import_what_they_may(path):
    inside = path.relative_to(ROOT / "tff_het")
    room = inside.parts[0] if len(inside.parts) > 1 else None
    names = imported(path)
    rooms = {name.split(".")[1] for name in names if name.startswith("tff_het.")} - SHARED
    allowed = MAY_IMPORT[room] | {room} if room else set()
    assert rooms <= allowed, f"{inside} imports {rooms - allowed}"
    others = {name.split(".")[0] for name in names}
    assert not others & {"embeddings", "experiments", "tests"}
    assert not any(
        name.startswith(("absl.flags", "tensorflow_hub", "apache_beam", "soundfile", "soxr"))
        for name in names
    )
    if room not in TFF_ROOMS and str(inside) not in TFF_FILES:
        assert "tensorflow_federated" not in others


def test_every_room_is_in_the_table():
    rooms = {p.name for p in (ROOT / "tff_het").iterdir() if p.is_dir() and any(p.glob("*.py"))}
    assert rooms == set(MAY_IMPORT)


EMBEDDINGS = sorted((ROOT / "embeddings").rglob("*.py"))


@pytest.mark.parametrize("path", EMBEDDINGS, ids=lambda p: str(p.relative_to(ROOT)))
def test_embeddings_import_data_sets_alone(path):
    names = imported(path)
    rooms = {name.split(".")[1] for name in names if name.startswith("tff_het.")} - SHARED
    assert rooms <= {"datasets"}, f"{path.name} imports {rooms}"
    assert not {name.split(".")[0] for name in names} & {"experiments", "tensorflow_federated"}


EXPERIMENTS = sorted((ROOT / "experiments").rglob("*.py"))


@pytest.mark.parametrize("path", EXPERIMENTS, ids=lambda p: str(p.relative_to(ROOT)))
def test_what_embeddings_need_is_imported_there_alone(path):
    others = {name.split(".")[0] for name in imported(path)}
    assert not others & {"embeddings", "apache_beam", "tensorflow_hub", "soundfile", "soxr"}
