"""Hands a notebook's further cells to another Python, whose outputs appear in their place.

For services whose own Python is too new for TensorFlow Federated, such as Colab: a kernel of
another environment is started beside the one that the notebook runs on. This file needs what every
notebook has (IPython, jupyter_client), and nothing of this project.
"""

import subprocess
import sys

from IPython import display, get_ipython
from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import start_new_kernel

_NAME = "tff-het"


def take_over(python: str) -> None:
    """Sends all cells from the next one on to the Python at this path, which has ipykernel."""
    install = [python, "-m", "ipykernel", "install", "--user", f"--name={_NAME}"]
    subprocess.run(install, check=True, capture_output=True)
    _, client = start_new_kernel(kernel_name=_NAME)
    shell = get_ipython()
    shell.user_ns["_run_there"] = lambda code: run(client, code)
    shell.input_transformers_cleanup.append(lambda lines: [f"_run_there({''.join(lines)!r})\n"])


def run(client: BlockingKernelClient, code: str) -> None:
    """Runs a cell's code there and shows what it shows; raises RuntimeError if it fails there."""
    reply = client.execute_interactive(code, output_hook=_show)
    if reply["content"]["status"] != "ok":
        raise RuntimeError("This cell failed in the other Python, as printed above.")


def _show(message: dict) -> None:
    kind, content = message["msg_type"], message["content"]
    if kind == "stream":
        file = sys.stderr if content["name"] == "stderr" else sys.stdout
        print(content["text"], end="", file=file)
    elif kind in ("display_data", "execute_result"):
        display.display(content["data"], metadata=content["metadata"], raw=True)
    elif kind == "error":
        print("\n".join(content["traceback"]), file=sys.stderr)
