"""Runs Python programs for one import of TensorFlow: forks itself for each.

Reads a line of JSON for each request, {"argv": [...], "folder": FOLDER}, where argv is what would
follow `python` on a command line, and answers with a line: the program's exit status. What it
prints is appended to FOLDER/printed. With argv[0] "set-up" the flags that follow are those of
`experiments.train`, which are read, and all that they name is made, but no round is trained.
"""

import json
import os
import runpy
import sys

import experiments  # noqa: F401  Sets TensorFlow's threads before it starts.
from tff_het import methods  # noqa: F401
from tff_het.evaluation import figures  # noqa: F401
from tff_het.simulation import loop, runtime  # noqa: F401


def main() -> None:
    for line in sys.stdin:
        request = json.loads(line)
        pid = os.fork()
        if pid == 0:
            become(request["argv"], request["folder"])
            return
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)


def become(argv: list[str], folder: str) -> None:
    printed = os.open(os.path.join(folder, "printed"), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for descriptor in (1, 2):
        os.dup2(printed, descriptor)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.chdir(folder)
    sys.path.insert(0, folder)
    if argv[0] == "-m":
        sys.argv = argv[1:]
        runpy.run_module(argv[1], run_name="__main__", alter_sys=True)
    elif argv[0] == "set-up":
        sys.argv = argv
        set_up()
    else:
        sys.argv = argv
        runpy.run_path(argv[0], run_name="__main__")


def set_up() -> None:
    from experiments import configure
    from experiments.flags import command_line, data, method, run

    def make(_) -> None:
        with command_line.errors_in_one_line():
            configure.fill_in_defaults()
            configure.processes(configure.setup())

    command_line.run(make, groups=(data, method, run))


if __name__ == "__main__":
    main()
