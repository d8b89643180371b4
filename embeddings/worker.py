"""Run as a worker process of Beam."""

import os
import signal
import sys


def main() -> None:
    """Works until the program has no more work."""
    # The program handles Ctrl-C and prints errors, which it is sent.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 (until the process ends)

    from apache_beam.runners.worker import sdk_worker_main  # Takes seconds.

    sdk_worker_main.main(sys.argv[:1])


if __name__ == "__main__":
    main()
