"""The Python files of a checkout: which there are, what each imports, and what it needs besides."""

import ast
import dataclasses
import fnmatch
import functools
import pathlib
import re
import sys
from collections.abc import Iterable, Iterator

# Where Python files are. What is in `.ci` is imported without a package's name.
FOLDERS = (".ci", "docs", "embeddings", "experiments", "tests", "tff_het")

# Module -> what it loads without importing it: patterns of modules, or a label of Bazel's.
LOADED_BY_NAME = {
    "experiments.study.papers": (
        *(
            f"experiments.{paper}.*"
            for paper in ("cgau", "edge_ensembles", "hdafl", "lg_fedavg", "waffle")
        ),
        *("experiments.boards.theirs", "experiments.boards.flower_scaffold"),
        *(
            f"experiments.boards.{one}"
            for one in ("as_released", "fair", "niid_bench", "p_fed_me", "pfllib")
        ),
    ),
    "experiments.main": (
        "embeddings.extract",
        *(
            f"experiments.{program}"
            for program in ("train", "sweep", "reproduce", "report", "list", "heterogeneity")
        ),
    ),
    # It hashes the source of all that takes part in a run.
    "experiments.study.identity": ("//:tff_het", "experiments.run.*"),
}

# Test or module -> files that it reads in the checkout, as labels. A test that asks where the
# checkout is and is not listed is given all of it, and so runs anew whenever any file changes.
FILES_READ: dict[str, tuple[str, ...]] = {
    "experiments/study/page.py": (":page.css",),
    "experiments/study/results.py": ("//experiments:all_files",),
    "tests/experiments/conftest.py": (),
    "tests/experiments/study/program_test.py": (),
    "tests/experiments/study/table3_test.py": (),
    "tests/experiments/run/config_test.py": ("//experiments:all_files",),
    "tests/experiments/train_test.py": (),
    "tests/simulation/runtime_test.py": (),
}
CHECKOUT = ("//:checkout",)

_PLACE = re.compile(r"(tff_het|experiments)(\.\w+)+:\w+")


@dataclasses.dataclass(frozen=True)
class Source:
    """A Python file.

    Attributes:
      path: The file, relative to the checkout.
      text: What it contains.
    """

    path: pathlib.PurePosixPath
    text: str

    @functools.cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text, str(self.path))

    @property
    def module(self) -> str:
        """The name that it is imported by; a package's own for `__init__.py`."""
        parts = self.path.with_suffix("").parts
        if self.is_in_search_path:
            return parts[-1]
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    @property
    def is_in_search_path(self) -> bool:
        """Whether its folder is in pytest's `pythonpath`."""
        return self.path.parts[0] == ".ci" or self.path.parts[:2] == ("tests", "helpers")

    @property
    def is_program(self) -> bool:
        """Whether people start it; `tff_het` has no programs, and tests start their own."""
        return self.path.parts[0] not in ("tests", "tff_het") and any(
            isinstance(node, ast.If) and "__main__" in ast.unparse(node.test)
            for node in self.tree.body
        )

    @property
    def is_test(self) -> bool:
        return self.path.parts[0] == "tests" and self.path.name.endswith("_test.py")

    @property
    def is_slow(self) -> bool:
        return "pytest.mark.slow" in self.text

    def strings(self) -> set[str]:
        """All strings that stand in it."""
        constants = (node.value for node in ast.walk(self.tree) if isinstance(node, ast.Constant))
        return {value for value in constants if isinstance(value, str)}

    def files_read(self) -> tuple[str, ...]:
        """What it reads in the checkout, as labels."""
        asks = self.path.parts[0] == "tests" and "Path(__file__).parents[" in self.text
        return FILES_READ.get(str(self.path), CHECKOUT if asks else ())


def read(root: pathlib.Path) -> list[Source]:
    """All Python files of a checkout, sorted by path."""
    found = []
    for folder in FOLDERS:
        for path in (root / folder).rglob("*.py"):
            inside = path.relative_to(root)
            if not any(part.startswith(".") for part in inside.parts[1:]):
                found.append(Source(pathlib.PurePosixPath(inside), path.read_text()))
    return sorted(found, key=lambda source: source.path)


def imported(tree: ast.AST, *, for_types: bool = True) -> set[str]:
    """Returns the dotted names that a file imports, wherever in it; `a.b.c` of `from a.b import c`.

    What stands in a registry ('a.b:c', `tff_het.registry`) counts as imported.

    Args:
      tree: The file.
      for_types: Whether what only type checkers import (`if TYPE_CHECKING:`) is among them.

    Raises:
      ValueError: If an import is relative.
    """
    left_out = {
        inner
        for node in ast.walk(tree)
        if not for_types and isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for statement in node.body
        for inner in ast.walk(statement)
    }
    names = set()
    for node in ast.walk(tree):
        if node in left_out:
            continue
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                raise ValueError(f"line {node.lineno}: a relative import; write the whole name")
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Constant) and _PLACE.fullmatch(str(node.value)):
            names.add(node.value.replace(":", "."))
    return names


def packages(module: str) -> Iterator[str]:
    """The packages that a module is in, from the outermost: `a`, `a.b` of `a.b.c`."""
    parts = module.split(".")
    return (".".join(parts[:n]) for n in range(1, len(parts)))


def needed(source: Source, modules: Iterable[str]) -> tuple[set[str], set[str], set[str]]:
    """What has to be there for a file to be imported; what serves type checkers alone need not.

    Packages that the file itself is in are not among it: who imports the file imports them before,
    and they may import the file.

    Returns:
      Modules of this project, names of other packages, and labels of `LOADED_BY_NAME`.
    """
    known = set(modules)
    own: set[str] = set()
    others: set[str] = set()
    labels: set[str] = set()
    for name in imported(source.tree, for_types=False):
        found = next((n for n in (name, *reversed(list(packages(name)))) if n in known), None)
        if found is not None:
            own.add(found)
        elif name.split(".")[0] not in sys.stdlib_module_names:
            others.add(name.split(".")[0])
    for pattern in LOADED_BY_NAME.get(source.module, ()):
        matching = set(fnmatch.filter(known, pattern))
        if pattern.startswith("//"):
            labels.add(pattern)
        elif matching:
            own |= matching
        else:
            raise ValueError(f"{source.path}: no module is called {pattern!r} (LOADED_BY_NAME)")
    around = {source.module, *packages(source.module)}
    own |= {p for module in own for p in packages(module) if p in known and p not in around}
    return own - {source.module}, others, labels
