"""Runs Python programs for one import of TensorFlow: forks itself for each.

Reads a line of JSON for each request and answers with a line: the program's exit status, its
greatest memory in kilobytes, and the seconds that it computed.

  argv: What would follow `python` on a command line. With argv[0] "set-up" the flags that follow
    are those of `experiments.train`, which are read, and all that they name is made, but no round
    is trained.
  folder: Where it runs; what it prints is appended to FOLDER/printed.
  env: What is added to its environment.
  max_file_bytes: No file can become longer, as if the disk were full.
  interrupt: A function, as `module:name`; at its first call SIGINT comes, as by Ctrl-C.
"""

import atexit
import gc
import importlib
import json
import os
import resource
import runpy
import signal
import sys
import traceback

# What most programs import, none of which starts TensorFlow. Programs themselves are run afresh.
import experiments  # noqa: F401  Sets TensorFlow's threads before it starts.
from experiments.run import aggregation, one, options  # noqa: F401
from experiments.study import pages, program, runner  # noqa: F401
from tff_het import methods  # noqa: F401
from tff_het.datasets import digits  # noqa: F401
from tff_het.evaluation import figures  # noqa: F401
from tff_het.simulation import loop, runtime  # noqa: F401


def main() -> None:
    list(options.owners())  # Reads their sources, which are then kept.
    gc.freeze()
    for line in sys.stdin:
        request = json.loads(line)
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                become(**request)
                code = 0
            except SystemExit as error:
                code = error.code if isinstance(error.code, int) else int(error.code is not None)
                if isinstance(error.code, str):
                    print(error.code, file=sys.stderr)
            except BaseException:
                traceback.print_exc()
            finally:
                # As a program ends, but for the memory, which takes longer than most programs.
                atexit._run_exitfuncs()
                sys.stdout.flush()
                os._exit(code)
        _, status, used = os.wait4(pid, 0)
        seconds = used.ru_utime + used.ru_stime
        print(os.waitstatus_to_exitcode(status), used.ru_maxrss, seconds, flush=True)


def become(
    argv: list[str],
    folder: str,
    env: dict[str, str] | None = None,
    max_file_bytes: int | None = None,
    interrupt: str | None = None,
) -> None:
    os.environ.update(env or {})
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if max_file_bytes is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (max_file_bytes, resource.RLIM_INFINITY))
    if interrupt is not None:
        interrupt_at(*interrupt.split(":"))
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
        set_up(argv[1:])
    else:
        sys.argv = argv
        runpy.run_path(argv[0], run_name="__main__")


def interrupt_at(module_name: str, function: str) -> None:
    module = importlib.import_module(module_name)
    original = getattr(module, function)

    def interrupted(*args, **kwargs):
        setattr(module, function, original)
        os.kill(os.getpid(), signal.SIGINT)
        return original(*args, **kwargs)

    setattr(module, function, interrupted)


def set_up(argv: list[str]) -> None:
    from experiments import train
    from experiments.run import command_line, processes, setup

    config = command_line.run_config(argv, train.__doc__)
    with command_line.errors_in_one_line():
        processes.build(setup.make(config))


if __name__ == "__main__":
    main()
