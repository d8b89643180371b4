"""Writes the BUILD files from the sources, or checks that they are what it would write.

python .ci/build_files.py [--check]

A target for each Python file, its dependencies what the file imports; visibility is
ARCHITECTURE.md's table. Bazel itself is not needed.
"""

import argparse
import collections
import graphlib
import os
import pathlib
import sys
from collections.abc import Iterable, Mapping, Sequence

import import_table
import sources

# Under `bazel run`, this file is in a copy of the checkout.
ROOT = pathlib.Path(os.environ.get("BUILD_WORKSPACE_DIRECTORY", pathlib.Path(__file__).parents[1]))
HEADER = "# Written by .ci/build_files.py; run it after a new file or import.\n"
BY_HAND = {".ci/bazel"}  # The toolchain, not the project.
OTHER_PACKAGES = ".ci/bazel/packages"
PYTHON_RULES = "@rules_python//python:defs.bzl"
PYTEST_RULE = "//.ci/bazel:pytest.bzl"
# An hour for files with tests of pytest.mark.slow.
SLOW = {"timeout": "eternal"}
# Those of the root, and of folders beside the packages.
ROOT_FILES = """\
glob(
        [
            "*",
            "docs/**",
        ],
        allow_empty = True,
    )"""

Value = str | int | bool | Sequence[str]


class Verbatim(str):
    """A value that is written as it is."""


def label(package: str, name: str, seen_from: str | None = None) -> str:
    """Returns a target's label, as short as it may be."""
    if package == seen_from:
        return f":{name}"
    return f"//{package}" if package.rpartition("/")[2] == name else f"//{package}:{name}"


def call(rule: str, **attributes: Value) -> str:
    """Returns a rule's call in Buildifier's layout; attributes that are empty are left out."""
    lines = [f"{rule}("]
    for name, value in attributes.items():
        if isinstance(value, Verbatim):
            lines.append(f"    {name} = {value},")
        elif isinstance(value, (str, int)):
            lines.append(f"    {name} = {_literal(value)},")
        elif len(value) == 1:
            lines.append(f"    {name} = [{_literal(value[0])}],")
        elif value:
            lines += [f"    {name} = [", *(f"        {_literal(v)}," for v in value), "    ],"]
    return "\n".join([*lines, ")\n"])


def _literal(value: str | int) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value)


def sort_labels(labels: Iterable[str]) -> list[str]:
    """Those of the own package first, as Buildifier has them."""
    return sorted(set(labels), key=lambda v: (not v.startswith(":"), v.replace(":", "\0")))


def subpackages(folder: str) -> str:
    return f"//{folder}:__subpackages__"


def visible_to(package: str) -> list[str]:
    """Who may depend on a package's targets: the import table, turned round; and the root."""
    top, *inside = package.split("/")
    if top != "tff_het":
        places = {top, "tests"}
        # A page of docs has all settings; a program of experiments starts the embeddings.
        places |= {"experiments": {"docs"}, "embeddings": {"experiments"}}.get(top, set())
    elif not inside or inside[0] in import_table.SHARED:  # These serve all.
        places = {"docs", "embeddings", "experiments", "tests", "tff_het"}
    elif inside[0] in import_table.MAY_IMPORT:
        rooms = {r for r, others in import_table.MAY_IMPORT.items() if inside[0] in others}
        places = {"docs", "experiments", "tests", *(f"tff_het/{r}" for r in {inside[0], *rooms})}
        if inside[0] in import_table.EMBEDDINGS_MAY_IMPORT:
            places.add("embeddings")
    else:
        raise ValueError(f"tff_het/{inside[0]} has no row in .ci/import_table.py")
    return ["//:__pkg__", *sorted(subpackages(place) for place in places)]


def package_visible_to(name: str) -> list[str]:
    """Who may depend on a package that is not this project's; nothing stands for everybody."""
    if name in import_table.OF_EMBEDDINGS:
        return [subpackages(place) for place in ("embeddings", "tests")]
    if name == import_table.TFF:
        return [subpackages(place) for place in ("tests", "tff_het/backend")]
    return []


def target_name(source: sources.Source) -> str:
    """The name of the target that holds a file."""
    if source.path.name == "__init__.py":
        return source.path.parent.name
    # A program's own name is that of the target which starts it.
    return source.path.stem + ("_lib" if source.is_program else "")


def _label_of(source: sources.Source, seen_from: sources.Source | None = None) -> str:
    """Returns the label of the library (or test) that holds a file."""
    package = str(seen_from.path.parent) if seen_from else None
    return label(str(source.path.parent), target_name(source), package)


class Project:
    """All targets of a checkout."""

    def __init__(self, root: pathlib.Path):
        """Reads the sources.

        Raises:
          ValueError: If files import each other in a circle.
        """
        self._sources = [s for s in sources.read(root) if str(s.path.parent) not in BY_HAND]
        self._by_module = {source.module: source for source in self._sources}
        self._by_path = {source.path: source for source in self._sources}
        self._needed = {
            source.module: sources.needed(source, self._by_module) for source in self._sources
        }
        graph = {module: own for module, (own, _, _) in self._needed.items()}
        try:
            graphlib.TopologicalSorter(graph).prepare()
        except graphlib.CycleError as error:
            raise ValueError("Imports in a circle: " + " <- ".join(error.args[1])) from None

    def build_files(self) -> dict[str, str]:
        """Returns the text of each package's BUILD file, by folder ("" for the root)."""
        by_package: dict[str, list[sources.Source]] = collections.defaultdict(list)
        for source in self._sources:
            by_package[str(source.path.parent)].append(source)
        texts = {package: self._package(package, found) for package, found in by_package.items()}
        texts[OTHER_PACKAGES] = self._other_packages()
        texts[""] = self._root([*texts, *BY_HAND])
        return texts

    def _package(self, package: str, found: Sequence[sources.Source]) -> str:
        calls: dict[str, str] = {}
        rules: dict[str, set[str]] = collections.defaultdict(set)
        for source in found:
            name = target_name(source)
            targets = {name: self._target(source, name)}
            if source.is_program:
                targets[source.path.stem] = ("py_binary", self._program(source, name))
            for name, (rule, text) in targets.items():
                if name in calls:
                    raise ValueError(f"{package}: two targets would be called {name}")
                calls[name] = text
                rules[PYTEST_RULE if rule == "pytest_test" else PYTHON_RULES].add(rule)
        loads = [
            "load({})\n".format(", ".join(f'"{word}"' for word in [file, *sorted(rules[file])]))
            for file in sorted(rules, key=lambda file: file.replace("@", "\0"))
        ]
        visibility = call("package", default_visibility=visible_to(package))
        return "\n".join(
            [HEADER, "".join(loads), visibility, _all_files()]
            + [calls[name] for name in sorted(calls)]
        )

    def _target(self, source: sources.Source, name: str) -> tuple[str, str]:
        """Returns the rule and the call for a file: a library, or a test."""
        package = str(source.path.parent)
        attributes: dict[str, Value] = {"srcs": [source.path.name]}
        data = list(source.files_read())
        dependencies = self._dependencies(source)
        for string in source.strings():  # A file beside it, which it starts as a program.
            beside = self._by_path.get(source.path.parent / string) if ".py" in string else None
            if beside is not None and beside is not source and package.startswith("tests"):
                dependencies.append(_label_of(beside, source))
        if source.is_test:
            for folder in source.path.parents:
                if folder / "conftest.py" in self._by_path:
                    conftest = self._by_path[folder / "conftest.py"]
                    dependencies.append(_label_of(conftest, source))
            attributes = {**(SLOW if source.is_slow else {}), **attributes}
        elif package.startswith("tests"):
            attributes = {"testonly": True, **attributes}
        if source.is_in_search_path:
            attributes["imports"] = ["."]
        rule = "pytest_test" if source.is_test else "py_library"
        deps = sort_labels(dependencies)
        attributes |= {"data": sort_labels(data), "deps": deps}
        return rule, call(rule, name=name, **attributes)

    def _program(self, source: sources.Source, library: str) -> str:
        around = [self._by_module.get(package) for package in sources.packages(source.module)]
        deps = [f":{library}", *(_label_of(p, source) for p in around if p is not None)]
        return call(
            "py_binary", name=source.path.stem, srcs=[source.path.name], deps=sort_labels(deps)
        )

    def _dependencies(self, source: sources.Source) -> list[str]:
        package = str(source.path.parent)
        own, others, labels = self._needed[source.module]
        return [
            *(_label_of(self._by_module[module], source) for module in own),
            *(label(OTHER_PACKAGES, name, package) for name in others),
            *labels,
        ]

    def _other_packages(self) -> str:
        names = sorted(set().union(*(others for _, others, _ in self._needed.values())))
        return "\n".join(
            [
                HEADER,
                f'load("{PYTHON_RULES}", "py_library")\n',
                "# Packages that the virtual environment has, by the names under which they are "
                "imported.",
                call("package", default_visibility=["//:__subpackages__"]),
                _all_files(),
                *(
                    call("py_library", name=name, visibility=package_visible_to(name))
                    for name in names
                ),
            ]
        )

    def _root(self, packages: Iterable[str]) -> str:
        library = [s for s in self._sources if s.path.parts[0] == "tff_het"]
        return "\n".join(
            [
                HEADER,
                f'load("{PYTHON_RULES}", "py_library")\n',
                call("package", default_visibility=["//visibility:public"]),
                'licenses(["notice"])  # Apache-2.0\n',
                'exports_files([\n    "LICENSE",\n    "pyproject.toml",\n])\n',
                "# The whole library, for other projects.",
                call(
                    "py_library",
                    name="tff_het",
                    deps=sort_labels(_label_of(source) for source in library),
                ),
                "# All files, for tests that look at the checkout.",
                call(
                    "filegroup",
                    name="checkout",
                    srcs=sort_labels(
                        [":all_files", *(f"//{package}:all_files" for package in packages)]
                    ),
                ),
                _all_files(ROOT_FILES),
            ]
        )


def _all_files(files: str = 'glob(["**"])') -> str:
    return call("filegroup", name="all_files", srcs=Verbatim(files))


def present(root: pathlib.Path) -> Iterable[str]:
    """The folders that have a BUILD file of this script's."""
    files = [root / "BUILD"]
    for folder in sources.FOLDERS:
        files += (root / folder).rglob("BUILD")
    folders = [file.parent.relative_to(root).as_posix() for file in files if file.exists()]
    return ("" if folder == "." else folder for folder in folders if folder not in BY_HAND)


def differences(root: pathlib.Path, texts: Mapping[str, str]) -> list[str]:
    """Returns the BUILD files that are missing, too many or not what they should be."""
    wrong = [
        folder
        for folder in {*texts, *present(root)}
        if not (path := root / folder / "BUILD").exists() or path.read_text() != texts.get(folder)
    ]
    return sorted(f"{folder}/BUILD".lstrip("/") for folder in wrong)


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; fail on differences")
    arguments = parser.parse_args(argv)
    try:
        texts = Project(ROOT).build_files()
    except (SyntaxError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    wrong = differences(ROOT, texts)
    if arguments.check:
        for path in wrong:
            print(
                f"{path} does not fit the sources: run python .ci/build_files.py", file=sys.stderr
            )
        return bool(wrong)
    for path in wrong:
        text = texts.get(path.removesuffix("BUILD").rstrip("/"))
        if text is None:
            (ROOT / path).unlink()
        else:
            (ROOT / path).parent.mkdir(parents=True, exist_ok=True)
            (ROOT / path).write_text(text)
        print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
