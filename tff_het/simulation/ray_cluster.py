"""The Ray cluster on which a round's clients (`ray_runtime`) or whole runs are executed."""

import contextlib
import logging
import os
import signal
import socket
import tempfile
import threading
from collections.abc import Iterator
from typing import Any


@contextlib.contextmanager
def connected() -> Iterator[Any]:
    """Connects to the Ray cluster at `$RAY_ADDRESS`, host:port, and yields the module `ray`.

    Without an address it starts a cluster of this machine alone, which ends with the block, or with
    this process, however that ends. A connection that is there already is used, and stays.

    Raises:
        ValueError: If Ray is not installed, or the address is none.
        ConnectionError: If there is no cluster at the address.
    """
    # Accelerators and metrics are warnings else; under `uv run` each worker would sync by uv.
    for name in (
        "USAGE_STATS_ENABLED",
        "enable_metrics_collection",
        "ACCEL_ENV_VAR_OVERRIDE_ON_ZERO",
        "ENABLE_UV_RUN_RUNTIME_ENV",
    ):
        os.environ.setdefault(f"RAY_{name}", "0")
    try:
        import ray
    except ModuleNotFoundError as error:
        raise ValueError(
            "Ray is not installed: uv sync --extra ray, or see docs/installing.md."
        ) from error
    if ray.is_initialized():
        yield ray
        return
    before = signal.getsignal(signal.SIGTERM)
    with contextlib.ExitStack() as stack:
        own: dict[str, Any] = {}
        if address := os.environ.get("RAY_ADDRESS"):
            _check(address)
        else:
            # Not in $TMPDIR, which may be long: paths of sockets have at most 107 bytes.
            folder = tempfile.TemporaryDirectory(
                prefix="tff_het_ray-", dir="/tmp", ignore_cleanup_errors=True
            )
            own = {"address": "local", "_temp_dir": stack.enter_context(folder)}
            own |= {"include_dashboard": False, "num_cpus": len(os.sched_getaffinity(0))}
            # For so long what is left of a cluster looks for the head of a program that was killed.
            os.environ.setdefault("RAY_gcs_rpc_server_reconnect_timeout_s", "5")
        stack.callback(ray.shutdown)
        ray.init(**own, log_to_driver=False, logging_level=logging.ERROR)
        if threading.current_thread() is threading.main_thread():  # Ray's handler is not ours.
            signal.signal(signal.SIGTERM, before)
        yield ray


def _check(address: str) -> None:
    """Refuses an address at which nobody is, where Ray would try again for minutes."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal():
        raise ValueError(f"Expected RAY_ADDRESS as host:port, found {address!r}.")
    try:
        socket.create_connection((host, int(port)), timeout=10.0).close()
    except OSError as error:
        raise ConnectionError(
            f"No Ray cluster answers at RAY_ADDRESS={address}: {error}"
        ) from error
