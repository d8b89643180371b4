"""Holds the sources to ARCHITECTURE.md's table, and the table's two forms to each other."""

import pathlib
import re

import pytest
from import_table import (
    EMBEDDINGS_MAY_IMPORT,
    MAY_IMPORT,
    OF_EMBEDDINGS,
    SHARED,
    TFF,
    TFF_FILES,
    TFF_ROOMS,
)
from sources import Source, imported

ROOT = pathlib.Path(__file__).parents[1]


def imports(path: pathlib.Path) -> set[str]:
    return imported(Source(pathlib.PurePosixPath(path), path.read_text()).tree)


LIBRARY = sorted((ROOT / "tff_het").rglob("*.py"))


@pytest.mark.parametrize("path", LIBRARY, ids=lambda p: str(p.relative_to(ROOT)))
def test_rooms_import_what_they_may(path):
    inside = path.relative_to(ROOT / "tff_het")
    room = inside.parts[0] if len(inside.parts) > 1 else None
    names = imports(path)
    rooms = {name.split(".")[1] for name in names if name.startswith("tff_het.")} - SHARED
    allowed = MAY_IMPORT[room] | {room} if room else set()
    assert rooms <= allowed, f"{inside} imports {rooms - allowed}"
    others = {name.split(".")[0] for name in names}
    assert not others & {"embeddings", "experiments", "tests"}
    assert not others & OF_EMBEDDINGS
    assert not any(name.startswith("absl.flags") for name in names)
    if room not in TFF_ROOMS and str(inside) not in TFF_FILES:
        assert TFF not in others


def test_every_room_is_in_the_table():
    rooms = {p.name for p in (ROOT / "tff_het").iterdir() if p.is_dir() and any(p.glob("*.py"))}
    assert rooms == set(MAY_IMPORT)


def test_architecture_has_the_same_table():
    rows = re.findall(
        r"^\| `tff_het/(\w+)/` \|[^|]*\|([^|]*)\|", (ROOT / "ARCHITECTURE.md").read_text(), re.M
    )
    # Words in brackets are remarks; "-" is none.
    assert {room: set(re.findall(r"\w+", re.sub(r"\(.*\)", "", text))) for room, text in rows} == (
        MAY_IMPORT
    )


EMBEDDINGS = sorted((ROOT / "embeddings").rglob("*.py"))


@pytest.mark.parametrize("path", EMBEDDINGS, ids=lambda p: str(p.relative_to(ROOT)))
def test_embeddings_import_data_sets_alone(path):
    names = imports(path)
    rooms = {name.split(".")[1] for name in names if name.startswith("tff_het.")} - SHARED
    assert rooms <= EMBEDDINGS_MAY_IMPORT, f"{path.name} imports {rooms}"
    assert not {name.split(".")[0] for name in names} & {"experiments", TFF}


EXPERIMENTS = sorted((ROOT / "experiments").rglob("*.py"))


@pytest.mark.parametrize("path", EXPERIMENTS, ids=lambda p: str(p.relative_to(ROOT)))
def test_what_embeddings_need_is_imported_there_alone(path):
    others = {name.split(".")[0] for name in imports(path)}
    assert not others & {"embeddings", *OF_EMBEDDINGS}
