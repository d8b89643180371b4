"""Every code block of the README and the documentation runs, and the site can be built.

Blocks of one document run in one folder, from the first to the last. So that this takes a minute,
trainings are cut down: what is not run as it stands is in one of the tables below.
"""

import ast
import importlib.util
import pathlib
import re
import shlex
import subprocess
import sys
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import programs
import pytest

from experiments import report
from experiments.run import command_line

ROOT = pathlib.Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
PAGES = sorted(f"docs/{path.name}" for path in ROOT.glob("docs/*.md"))
DOCUMENTS = ("README.md", "CONTRIBUTING.md", *PAGES)

# Beginning of a command -> flags that are added to it, so that it takes seconds.
CUT_DOWN = {
    "python -m experiments.train": "--rounds=1",
    "python -m experiments.sweep --over=method=hdafl,fed_avg --over=dataset=digits": (
        "--seeds=1 --set=rounds=1"
    ),
}
# A part of a training on many images: flags are read, data loaded and methods built; no round.
SET_UP_ALONE = (
    "--dataset=fashion_mnist",
    "--dataset=adult",
    "--flagfile=experiments/presets/",
)
# What .ci/run runs whole.
DEMO = "uv run python -m experiments.train"
# Beginnings of other commands that it runs, as they stand or as a stricter form of them.
RUN_BY_CI = (
    "pip install uv",
    "uv sync --group test --group docs --extra embeddings",
    "--group test ruff check .",
    "--group test ruff format --check .",
    "--group test mypy",
    "--group test --extra embeddings pytest",
    "uv lock",
    "uv export --no-hashes --no-emit-project",
)
# Beginnings of commands that are not run, and why.
_CLUSTER = "starts a Ray cluster, or needs one; ray_test.py has one of this machine"
_PRIVATE = "makes keys for a cluster"
NOT_RUN = {
    "--group docs mkdocs serve": "never ends; `mkdocs build` is run",
    "ray start": _CLUSTER,
    "python -m experiments.train --runtime=ray": _CLUSTER,
    "python -m experiments.reproduce hdafl.table5 --scale=smoke --engine=ray": _CLUSTER,
    "python -m experiments.reproduce hdafl.table3 --engine=ray": _CLUSTER,
    "python -m experiments.train --method=hdafl,fed_avg --dataset=npz": "needs a file of the "
    "reader's; your_own.md makes one and trains on it",
    "python -m experiments.boards.enter": "needs data; fair_test.py enters a method",
    "bazel ": "needs Bazel, which .ci/run has where apt can install it",
    "openssl": _PRIVATE,
    "export RAY_": _PRIVATE,
}


class Block(NamedTuple):
    """A fenced block of code, and the line that it begins at."""

    document: str
    line: int
    language: str
    title: str
    text: str

    def __str__(self) -> str:
        return f"{self.document}:{self.line}"

    @property
    def commands(self) -> list[str]:
        lines = self.text.replace("\\\n", " ").splitlines()
        parts = [part for line in lines for part in line.split("&&")]
        return [" ".join(part.split()) for part in parts if part.strip()]


def blocks_of(document: str) -> Iterator[Block]:
    text = (ROOT / document).read_text()
    for found in re.finditer(r"^```(.*)\n((?:.*\n)*?)```$", text, re.MULTILINE):
        language, _, rest = found[1].partition(" ")
        title = re.search(r'title="(.*?)"', rest)
        line = text.count("\n", 0, found.start()) + 1
        yield Block(document, line, language, title[1] if title else "", found[2])


BLOCKS = [block for document in DOCUMENTS for block in blocks_of(document)]
SHELL = [block for block in BLOCKS if block.language == "sh"]
PYTHON = [block for block in BLOCKS if block.language == "python" and not block.title]
FILES = [block for block in BLOCKS if block.title]


def beginning_of(command: str, beginnings: Iterable[str]) -> str | None:
    """Which of these a command begins with, whether uv runs it or not."""
    return next((b for b in beginnings if command.removeprefix("uv run ").startswith(b)), None)


def argv_of(command: str) -> list[str] | None:
    """What is run for a command, as `forking` takes it; None for what is not run here."""
    if command == DEMO or beginning_of(command, (*RUN_BY_CI, *NOT_RUN)):
        return None
    words = shlex.split(command.removeprefix("uv run "))
    assert words[0] == "python", f"Not a Python program, and in no table: {command}"
    if "experiments.train" in words and any(part in command for part in SET_UP_ALONE):
        return ["set-up", *words[3:]]
    dry = "--dry_run" in words
    beginning = None if dry else beginning_of(command, CUT_DOWN)
    return words[1:] + (CUT_DOWN[beginning].split() if beginning else [])


class Documents:
    """Runs programs, those of one document in one folder, which has the document's files."""

    def __init__(self, folder: pathlib.Path):
        self.folders = {name: folder / name.replace("/", "_") for name in DOCUMENTS}
        for inside in self.folders.values():
            inside.mkdir()
            (inside / "experiments").symlink_to(ROOT / "experiments")
        for block in FILES:
            (self.folders[block.document] / block.title).write_text(block.text)
        self._forks = programs.Programs()

    def run(self, document: str, argv: list[str]) -> str:
        """Runs a program to its end, which has to be a success; returns what it printed."""
        ended = self._forks.run(argv, self.folders[document])
        assert ended.code == 0, ended.printed
        return ended.printed

    def close(self) -> None:
        self._forks.close()


@pytest.fixture(scope="module")
def documents(tmp_path_factory) -> Iterator[Documents]:
    started = Documents(tmp_path_factory.mktemp("documents"))
    yield started
    started.close()


@pytest.mark.slow
@pytest.mark.parametrize("block", SHELL, ids=str)
def test_commands_run(block, documents, request):
    for command in block.commands:
        argv = argv_of(command)
        if argv is None:
            continue
        if "--data_dir=DIR" in argv:
            folder = request.getfixturevalue("data_dir")
            argv = [word.replace("=DIR", f"={folder}") for word in argv]
        documents.run(block.document, argv)


@pytest.mark.slow
@pytest.mark.parametrize("block", PYTHON, ids=str)
def test_python_runs(block, documents):
    (documents.folders[block.document] / "block.py").write_text(block.text)
    printed = documents.run(block.document, ["block.py"])
    if "loop.train" in block.text:
        accuracies = [float(number) for number in re.findall(r"\d+\.\d*", printed)]
        assert len(accuracies) == 5
        # Far above the 0.1 of guessing, so something was learned.
        assert sum(accuracies) / 5 > 0.5


def test_presets_are_those_of_the_tables():
    command = [sys.executable, ROOT / ".ci" / "presets.py", "--check"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, f"Run .ci/presets.py; different: {done.stdout}"


@pytest.mark.slow
def test_result_pages_are_those_of_the_kept_results():
    different = report.write_pages(check=True)
    assert not different, f"Run python -m experiments.report; different: {different}"


def test_every_block_says_what_it_is():
    assert {block.language for block in BLOCKS} <= {"python", "sh", "text", "yaml"}
    fences = sum((ROOT / name).read_text().count("```") for name in DOCUMENTS)
    assert fences == 2 * len(BLOCKS)


@pytest.mark.parametrize("block", FILES, ids=str)
def test_files_are_used_on_their_page(block):
    stem = block.title.removesuffix(".py")
    others = [b.text for b in BLOCKS if b.document == block.document and b != block]
    assert any(re.search(rf"\b{stem}\b", text) for text in others)


def test_the_tables_name_commands_that_are_there():
    commands = [command for block in SHELL for command in block.commands]
    assert DEMO in commands
    for beginning in (*CUT_DOWN, *RUN_BY_CI, *NOT_RUN):
        assert any(beginning_of(command, [beginning]) for command in commands), beginning
    for part in SET_UP_ALONE:
        assert any(part in command for command in commands), part


def test_runs_of_different_commands_have_folders_of_their_own():
    """Whoever gives them one after another must not meet a run with other settings."""
    first: dict[str, str] = {}
    for command in (command for block in SHELL for command in block.commands):
        prints = "--print_config" in command or "--help" in command
        if re.search(r"experiments[.:]train\b", command) and not prints:
            folder = re.search(r"--output_dir=(\S+)", command)
            name = folder[1] if folder else "runs/demo"
            assert first.setdefault(name, command) == command, name


def test_the_worked_example_of_a_method_is_short():
    code = max((b.text for b in PYTHON if b.document == "README.md"), key=len)
    assert len(code.strip().splitlines()) <= 16


def words(text: str) -> int:
    """Words outside of code and tables."""
    prose = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    return len(re.sub(r"^\|.*$", "", prose, flags=re.MULTILINE).split())


# What readers stumble over -> what to write instead.
PLAIN = {
    r"hangs? on": "depends on",
    r"kinds? of processor": "CPU type",
    r"anew": "again, re-",
    r"whoever": "anyone who",
    r"what there is": "say what",
    r"by which": "with which, on which",
    r"the way gone": "the norm of the update",
    r"deals|dealt": "assigns, partitioned",
    r"judge[sd]?": "evaluates, checks",
    r"so many": "this many",
    r"is promised nothing": "gets no guarantee",
    r"goes?\s+on\s+where": "continues where",
}


def prose() -> Iterator[tuple[pathlib.Path, str]]:
    """What people read: pages, and docstrings with the text of `--help`."""
    for pattern in ("*.md", "docs/*.md", "experiments/*/*.md", "embeddings/*.md"):
        for path in ROOT.glob(pattern):
            text = re.sub(r"^```.*?^```", "", path.read_text(), flags=re.DOTALL | re.MULTILINE)
            yield path, re.sub(r"`[^`]*`", "", text)
    for folder in ("tff_het", "experiments", "embeddings"):
        for path in (ROOT / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                    # Without code, and without names of parameters.
                    text = re.sub(r"`[^`]*`|^ +\w+:", "", ast.get_docstring(node) or "", flags=re.M)
                    yield path, text
    yield pathlib.Path("--help"), command_line.help_text()


def test_words_that_readers_stumble_over_stay_away():
    found = [
        f"{path}: {match[0]!r}; write {instead}"
        for path, text in prose()
        for phrase, instead in PLAIN.items()
        for match in re.finditer(rf"\b({phrase})\b", text, re.IGNORECASE)
    ]
    assert found == []


def test_pages_stay_short():
    assert words(README) <= 700
    assert len((ROOT / "ARCHITECTURE.md").read_text().split()) <= 1500
    findings = sorted(ROOT.glob("experiments/*/findings.md"))
    assert len(findings) == 6
    for path in findings:
        short = path.read_text().split("\n\n")[0]
        assert short.startswith("**In short.**") and len(short.split()) <= 120, path


def test_ci_runs_the_readme_commands():
    ci = (ROOT / ".ci" / "run").read_text()
    for pattern in re.findall(r"grep -m1 -o '([^']+)' README.md", ci):
        assert re.search(pattern, README), pattern


@pytest.mark.parametrize("document", ["README.md", "CONTRIBUTING.md", "ARCHITECTURE.md"])
def test_links_lead_to_files(document):
    text = (ROOT / document).read_text()
    links = [link for link in re.findall(r"\]\(([^)#]+)[^)]*\)", text) if "://" not in link]
    for name in links + re.findall(r"--flagfile=(\S+\.flags)", text):
        assert (ROOT / name).exists(), name


def test_every_room_has_a_page_of_reference():
    pages = set(re.findall(r"reference/(\w+)\.md", (ROOT / "mkdocs.yml").read_text()))
    rooms = {path.parent.name for path in ROOT.glob("tff_het/*/__init__.py")}
    assert pages == {"settings", *rooms}


def test_citation_names_this_version_and_five_papers():
    citation = (ROOT / "CITATION.cff").read_text()
    version = re.search(r'^version = "(.*)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert version
    assert f"\nversion: {version[1]}\n" in citation
    assert f"\n## [{version[1]}]" in (ROOT / "CHANGELOG.md").read_text()
    assert citation.count("- type: article") == 5


@pytest.mark.slow
@pytest.mark.skipif(
    importlib.util.find_spec("mkdocs") is None,
    reason="mkdocs is not installed: it is in the group docs",
)
def test_the_site_builds(tmp_path):
    """Without a warning: a link that leads nowhere is one, as is a docstring of another form."""
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", f"--site-dir={tmp_path}"]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    # Nothing is loaded from elsewhere, so that it works without a network.
    for page in tmp_path.rglob("*.html"):
        assert not re.findall(
            r'<(?:script|img|link rel="stylesheet")[^>]*"https?:', page.read_text()
        )
