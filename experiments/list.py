"""Lists methods, datasets, partitions, models or experiments, one line each.

python -m experiments.list methods
python -m experiments.list models --plugin=my_network.py
"""

import ast
import dataclasses
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from experiments.run import command_line, options, plugins
from experiments.study import papers

_ROLES = {"methods": "method", "datasets": "dataset", "partitions": "partition", "models": "model"}


@dataclasses.dataclass(frozen=True)
class Settings:
    """Settings of this program, behind the word that says what is listed.

    Attributes:
      plugin: Modules or files (.py) that register more.
    """

    plugin: Sequence[str] = ()


def main(argv: Sequence[str]) -> int:
    """Prints a list; returns the exit code."""
    known, what = (*_ROLES, "experiments"), " ".join(a for a in argv if not a.startswith("-"))
    settings = command_line.settings(Settings, [a for a in argv if a.startswith("-")], __doc__)
    if what not in known:
        command_line.refuse(f"Name one of {', '.join(known)}; found {what or 'none'}.")
    with command_line.errors_in_one_line():
        plugins.load(settings.plugin)
        found = lines(what)
    width = max(map(len, found))
    command_line.show("\n".join(f"{name:{width}}  {text}" for name, text in found.items()))
    return 0


def lines(what: str) -> Mapping[str, str]:
    """Returns a line on each of what is listed, by name, without importing it."""
    if what != "experiments":
        known = options.REGISTRIES[_ROLES[what]]
        return {name: known.description(name) for name in known}
    found = {}
    for name in papers.names():
        path = Path(__file__).parent / f"{name.replace('.', '/')}.py"
        text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        found[name] = text.partition("\n")[0]
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
