"""The communication ledger: how many bytes a round moves, read off the compiled computation.

What counts is what the runtime is told to move, not what a method says that it sends: the types of
the values that cross between server and clients in the compiled `next`. So quantised updates
count as they are encoded, what an aggregator exchanges for itself (clipping bounds, counts) counts
too, and what only comes back at CLIENTS (client states) or is dead code does not.

Not counted are what depends on the transport (serialisation, headers, the masks of secure
aggregation) and the computation itself, constants of which (`federated_value` at CLIENTS) are part.

What all this is to be compared with, sending the examples themselves once, is `compressed_bytes`.
"""

import dataclasses
import io
import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from tff_het import kept
from tff_het.backend.building_blocks import call_dominant
from tff_het.backend.names import tff
from tff_het.clients import Population
from tff_het.learning.process import FederatedProcess


class Transfer(NamedTuple):
    """One value that crosses between the server and each client.

    Attributes:
      to_server: True from the client to the server, False the other way.
      value_type: The type of what one client receives or sends, without placement.
      num_bytes: Its size for one client.
    """

    to_server: bool
    value_type: tff.Type
    num_bytes: int


@dataclasses.dataclass(frozen=True)
class Ledger:
    """What one client sends and receives in one round.

    Attributes:
      parameters_total: Numbers in a client's whole model.
      parameters_sent: Those of the global variables. Of most methods they travel each way; the
        bytes also count what else does (control variates), or does not (models that IFCA leaves).
      bytes_up: Bytes from a client to the server, metrics included. Of an update that is known to
        be 0 but for a share (`ClientWork.upload_share`), that share alone counts.
      bytes_down: Bytes from the server to a client.
      metrics_bytes_up: How many of `bytes_up` are the client work's training metrics, which no
        method needs. An aggregator's own are not in here.
    """

    parameters_total: int
    parameters_sent: int
    bytes_up: int
    bytes_down: int
    metrics_bytes_up: int


def ledger(process: FederatedProcess) -> Ledger:
    """Returns the ledger of a process, executing nothing; errors as of `transfers`."""
    moved = transfers(process.next)
    sent = process.client_update.type_signature.result.member
    metrics_type = sent["metrics"]
    update = num_bytes(sent["update"])
    # Rounded up; the tiny part taken off is what a share such as 1 / 3 is too large by.
    known_zero = update - math.ceil(process.upload_share * update - 1e-6)
    return Ledger(
        parameters_total=process.model.num_parameters,
        parameters_sent=process.model.num_global_parameters,
        bytes_up=sum(t.num_bytes for t in moved if t.to_server) - known_zero,
        bytes_down=sum(t.num_bytes for t in moved if not t.to_server),
        metrics_bytes_up=sum(
            t.num_bytes
            for t in moved
            if t.to_server and metrics_type.is_equivalent_to(t.value_type)
        ),
    )


def staying_put(process: FederatedProcess) -> Ledger:
    """Returns the ledger of a process whose only client is where the server is.

    In centralised training the examples travel, once (see `compressed_bytes`), and the model does
    not, though the computation hands it over.
    """
    return Ledger(process.model.num_parameters, 0, 0, 0, 0)


def sending_local_models(process: FederatedProcess, num_clients: int) -> tuple[int, int]:
    """Returns the cost of sending all clients' local variables to one place, once.

    So the ensemble of Liang et al. (2019, LG-FedAvg), footnote 1, gets there after training; the
    global variables are at the server already. Where clients predict with what they adapt or keep
    beside these, they send whole models. See `ensemble.new_test`.

    Returns:
      How many numbers these are, and their bytes.
    """
    sent = [spec for spec in process.model.specs if spec.local or process.adapts]
    # Of several models (IFCA), the one that it uses.
    numbers = round(num_clients * process.upload_share * sum(spec.size for spec in sent))
    size = sum(spec.size * spec.dtype.size for spec in sent)
    return numbers, round(num_clients * process.upload_share * size)


def compressed_bytes(population: Population) -> int:
    """Returns the cost of sending all training examples to one place.

    Every client sends one file with all its columns (x and y, unless the population was made with
    others) in their stored dtypes, written by `np.savez_compressed`: a zip archive with zlib's
    deflate at its default level, its headers included.
    """
    total = 0
    for client in population:
        file = io.BytesIO()
        np.savez_compressed(file, **client.train)
        total += file.getbuffer().nbytes
    return total


@kept.by_content(size=64)
def transfers(computation: tff.Computation) -> tuple[Transfer, ...]:
    """Returns what crosses between server and clients, compiled as the runtime compiles it.

    Returns:
      The transfers in the order of the compiled computation; one that is called twice is in it
      twice.

    Raises:
      ValueError: If a value holds strings, sequences or dimensions that are not fixed, or if
        `federated_select` is used: whether clients receive their slices or everything is up to the
        runtime.
    """
    found: list[Transfer] = []

    def visit(block):
        if isinstance(block, tff.framework.Call) and isinstance(
            block.function, tff.framework.Intrinsic
        ):
            found.extend(_transfers_of(block.function.uri, block.function.type_signature))
        return block, False

    # What TFF's compiler does after this rewrites graphs, not types.
    tff.framework.transform_postorder(call_dominant(computation), visit)
    return tuple(found)


def _transfers_of(operator: str, signature: tff.FunctionType) -> Iterator[Transfer]:
    """Whatever the operator: what is placed elsewhere than its result has to get there."""
    if not isinstance(signature.result, tff.FederatedType):
        return
    for argument in _federated_types(signature.parameter):
        if operator in ("federated_select", "federated_secure_select"):
            raise ValueError(
                f"How much {operator} moves is up to the runtime: each client's slices, or all of "
                f"them. Found one at {argument}."
            )
        if argument.placement is not signature.result.placement:
            yield Transfer(
                to_server=signature.result.placement is tff.SERVER,
                value_type=argument.member,
                num_bytes=num_bytes(argument.member),
            )


def _federated_types(value_type: tff.Type | None) -> Iterator[tff.FederatedType]:
    if isinstance(value_type, tff.FederatedType):
        yield value_type
    elif isinstance(value_type, tff.StructType):
        for element in value_type:
            yield from _federated_types(element)


def num_bytes(value_type: tff.Type) -> int:
    """Returns the size of a value of this type: its numbers and nothing around them.

    Raises:
      ValueError: If the type does not fix it.
    """
    if isinstance(value_type, tff.StructType):
        return sum(num_bytes(element) for element in value_type)
    if not isinstance(value_type, tff.TensorType):
        raise ValueError(f"The size of a value of type {value_type} depends on the value.")
    dtype, shape = np.dtype(value_type.dtype), value_type.shape
    if dtype.kind in "OSU" or shape is None or None in shape:
        raise ValueError(
            f"The size of a tensor of type {value_type} depends on its value: measure an encoded "
            "one, or let it have a fixed shape."
        )
    return math.prod(shape) * dtype.itemsize
