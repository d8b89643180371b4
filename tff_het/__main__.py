"""The console script `tff-het`: all programs, by their first word."""

import os
import runpy
import sys
from pathlib import Path


def main() -> None:
    # A wheel has the programs in here, a checkout beside us. Those that they start look there too.
    if (suite := Path(__file__).parent / "suite").is_dir():
        sys.path.insert(0, str(suite))
        os.environ["PYTHONPATH"] = f"{suite}{os.pathsep}{os.getenv('PYTHONPATH') or suite}"
    runpy.run_module("experiments.main", run_name="__main__")


if __name__ == "__main__":
    main()
