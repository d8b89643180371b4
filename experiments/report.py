"""Writes what was run of the papers' tables and figures as one page, CSV and Markdown.

  python -m experiments.report --output_dir=out

The page is OUTPUT_DIR/report/index.html: one file that needs no network.
"""

import collections
import dataclasses
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from experiments.run import command_line
from experiments.study import files, page, papers, runner, sections
from experiments.study.experiment import Experiment
from tff_het.simulation import records


def write(experiments: Iterable[Experiment], output_dir: Path, folder_name: str = "report") -> Path:
    """Writes the report on all scales that were run; returns the page's path.

    Args:
      experiments: What may have been run.
      output_dir: Where the results are.
      folder_name: Where the report goes, inside `output_dir`.

    Raises:
      ValueError: If nothing was run, or a result was not written by this program.
    """
    found = [
        section
        for experiment in experiments
        for scale in experiment.scales
        if (section := sections.section(experiment, scale, output_dir)) is not None
    ]
    if not found:
        raise ValueError(
            f"There are no runs in {output_dir}. Make some, such as python -m "
            f"experiments.hdafl.table3 --scale=smoke --output_dir={output_dir}."
        )
    folder = output_dir / folder_name
    folder.mkdir(parents=True, exist_ok=True)
    for section in found:
        records.write_atomically(folder / f"{section.id}.csv", files.as_csv(section))
        records.write_atomically(folder / f"{section.id}.md", files.as_markdown(section))
    records.write_atomically(folder / "index.html", page.page(found))
    return folder / "index.html"


def stale(experiments: Iterable[Experiment], output_dir: Path) -> str:
    """Returns which results come from other code or settings than there are now, and which."""
    lines = []
    for experiment in experiments:
        for scale in experiment.scales:
            results = runner.read(experiment, scale, output_dir)
            if results is None:
                continue
            cells = {cell.name: cell for cell in experiment.scales[scale].cells}
            reasons = (runner.why_outdated(cells[name], r) for (name, _), r in results.runs.items())
            for reason, times in collections.Counter(filter(None, reasons)).items():
                runs = f"{times} of {len(results.runs)} runs"
                lines.append(f"{experiment.id}, {scale}: {runs}, since changed: {reason}")
    return "\n".join(lines) or "All results are of the code and settings that there are now."


@dataclasses.dataclass(frozen=True)
class Settings:
    """Settings of this program.

    Attributes:
      output_dir: Where the results are.
      stale: Say which results come from code or settings that have changed since, and stop.
    """

    output_dir: str = "runs"
    stale: bool = False


def main(argv: Sequence[str]) -> int:
    """Writes the report; returns the exit code."""
    settings = command_line.settings(Settings, argv, __doc__)
    with command_line.errors_in_one_line():
        folder = command_line.folder(settings.output_dir)
        print((stale if settings.stale else write)(papers.all_experiments(), folder))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
