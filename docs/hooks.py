"""Pages of the site that are not files of this folder.

Results, architecture and the like stand elsewhere in the repository and are shown as they are. The
reference has one page for each room of the library, made of the modules that are there, and one
of a run's settings.
"""

import pathlib
import re

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = pathlib.Path(__file__).parents[1]
ELSEWHERE = (
    "ARCHITECTURE.md",
    "CITATION.cff",
    "LICENSE",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "embeddings/README.md",
    "experiments/*/README.md",
    "experiments/*/claims.md",
    "experiments/deploy/*",
    "experiments/*/*.ipynb",
    "experiments/*/*.png",
    "experiments/*/*.svg",
)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the pages, and the files that they show or link to."""
    for path in sorted(path for pattern in ELSEWHERE for path in ROOT.glob(pattern)):
        uri = path.relative_to(ROOT).as_posix()
        files.append(File.generated(config, uri, abs_src_path=str(path)))
    # Under another name: the site's first page is docs/index.md.
    files.append(File.generated(config, "overview.md", abs_src_path=str(ROOT / "README.md")))
    files.append(File.generated(config, "reference/settings.md", content=settings()))
    for package in sorted((ROOT / "tff_het").glob("*/__init__.py")):
        room = package.parent.name
        files.append(File.generated(config, f"reference/{room}.md", content=reference(room)))
    return files


def reference(room: str) -> str:
    """Returns the page on a room: its own docstring, then its public modules by name."""
    folder = ROOT / "tff_het" / room
    paths = sorted(folder.rglob("*.py"), key=lambda path: path.with_suffix("").parts)
    names = [path.relative_to(ROOT).with_suffix("").as_posix().replace("/", ".") for path in paths]
    modules = [name for name in names if "._" not in name.replace(".__init__", "")]
    # Of packages only what their docstrings say: members are shown where they are defined.
    blocks = [
        f"::: {name.removesuffix('.__init__')}\n"
        + ("    options: {members: false}\n" if name.endswith("__init__") else "")
        for name in modules
        if not name.endswith("__init__") or name.count(".") > 2
    ]
    title = f"# tff_het.{room}\n\n::: tff_het.{room}\n"
    options = "    options: {members: false, show_root_heading: false}\n"
    return title + options + "\n" + "\n".join(blocks)


def settings() -> str:
    """Returns the page on the settings of a run, in the order of their definition."""
    from experiments.run import config, options
    from tff_het import kinds, registry

    def entry(name: str, field: registry.Parameter) -> str:
        parts = [f"### {name} {{ #{name} }}", field.help]
        if values := kinds.hint(field.kind):
            parts.append(f"Values: `{values}`.")
        if field.default is not None:
            parts.append(f"Default: `{kinds.text(field.default)}`.")
        return "\n\n".join(parts)

    parts = [
        "# Settings of a run",
        "Each is a flag of `python -m experiments.train`, a line of a YAML file and an argument of "
        "`RunConfig.of`. Where no default is named, it is none, or what the text says.",
    ]
    for section in config.SECTIONS.values():
        title, _, rest = (section.__doc__ or "").partition("\n")[0].partition(": ")
        parts += [f"## {title}", rest[:1].upper() + rest[1:]]
        parts += [entry(name, field) for name, field in registry.settings(section).items()]
    parts.append("## Options")
    for role, owner, known in options.owners():
        parts += [
            f"Of `--{role}={owner}`:",
            *(entry(f"{owner}.{name}", field) for name, field in known.items()),
        ]
    return "\n\n".join(parts)


def on_page_markdown(markdown: str, page: Page, **_) -> str:
    """Links of this folder's pages lead out of it in the repository, and stay inside the site."""
    markdown = markdown.replace("](../", "](") if "/" not in page.file.src_uri else markdown
    return re.sub(r"\]\(docs/", "](", markdown).replace("](README.md", "](overview.md")


def on_page_content(html: str, **_) -> str:
    """No line ends between the hyphens of a flag and its name."""
    return re.sub(
        r"(?<=<code>)[^<]+",
        lambda code: re.sub(r"(?<!\w)--?\w[\w-]*", r'<span class="flag">\g<0></span>', code[0]),
        html,
    )
