"""Holds the sources to ARCHITECTURE.md's table, and the table's two forms to each other."""

import pathlib
import re

from import_table import (
    EMBEDDINGS_MAY_IMPORT,
    MAY_IMPORT,
    OF_EMBEDDINGS,
    SHARED,
    TFF,
)
from sources import Source, imported

ROOT = pathlib.Path(__file__).parents[1]


def imports(path: pathlib.Path) -> set[str]:
    return imported(Source(pathlib.PurePosixPath(path), path.read_text(encoding="utf-8")).tree)


def files(folder: str) -> list[pathlib.Path]:
    found = sorted((ROOT / folder).rglob("*.py"))
    assert len(found) > 5
    return found


def rooms_in(names: set[str]) -> set[str]:
    """The rooms of the library among imported names."""
    return {name.split(".")[1] for name in names if name.startswith("tff_het.")} - SHARED


def packages_in(names: set[str]) -> set[str]:
    return {name.split(".")[0] for name in names}


def test_rooms_import_what_they_may():
    for path in files("tff_het"):
        inside = path.relative_to(ROOT / "tff_het")
        room = inside.parts[0] if len(inside.parts) > 1 else None
        names = imports(path)
        allowed = MAY_IMPORT.get(room, set()) | ({room} - {None})
        assert rooms_in(names) <= allowed, f"{inside} imports {rooms_in(names) - allowed}"
        others = packages_in(names)
        assert not others & {"embeddings", "experiments", "tests"}, inside
        assert not others & OF_EMBEDDINGS, inside
        assert not any(name.startswith("absl.flags") for name in names), inside


def test_every_room_is_in_the_table():
    rooms = {p.name for p in (ROOT / "tff_het").iterdir() if p.is_dir() and any(p.glob("*.py"))}
    assert rooms - SHARED == set(MAY_IMPORT)


def test_what_moves_with_tensorflow_is_named_in_the_backend_alone():
    moving = re.compile(
        r"^ *(from|import) (tensorflow_federated|tensorflow\.python|keras)\b"
        r"|(?<!`)\btf\.(keras|__internal__)\b",
        re.MULTILINE,
    )
    door = files("tff_het/backend")
    assert any(moving.search(path.read_text()) for path in door)
    for folder in ("tff_het", "experiments", "embeddings", "tests"):
        for path in sorted(set(files(folder)) - {*door}):
            found = moving.search(path.read_text())
            assert not found, f"{path} has {found[0].strip()!r}: take it from tff_het.backend"


def test_architecture_has_the_same_table():
    rows = re.findall(
        r"^\| `tff_het/(\w+)/` \|[^|]*\|([^|]*)\|", (ROOT / "ARCHITECTURE.md").read_text(), re.M
    )
    # Words in brackets are remarks; "-" is none.
    assert {room: set(re.findall(r"\w+", re.sub(r"\(.*\)", "", text))) for room, text in rows} == (
        MAY_IMPORT
    )


def test_embeddings_import_data_sets_alone():
    for path in files("embeddings"):
        names = imports(path)
        assert rooms_in(names) <= EMBEDDINGS_MAY_IMPORT, path
        assert not packages_in(names) & {"experiments", TFF}, path


def test_what_embeddings_need_is_imported_there_alone():
    for path in files("experiments"):
        assert not packages_in(imports(path)) & {"embeddings", *OF_EMBEDDINGS}, path
