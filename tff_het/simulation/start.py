"""What training starts from: values of variables by path, from a run or from anywhere.

A method may start from the model of another, as LG-FedAvg from that of FedAvg (Liang et al. 2019,
§3.1): a model without a local part becomes one with it, since variables go by their paths.
"""

import dataclasses
import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from tff_het import writing
from tff_het.learning.client_work import ClientState
from tff_het.learning.process import FederatedProcess, ServerState
from tff_het.models.model import Model, Variables
from tff_het.numbers import INT32, Number
from tff_het.simulation.client_states import ClientStates

FILE = "weights.npz"
_ROUNDS = "rounds"  # Beside the variables, none of which is called so.

# Path of a variable, such as `dense_1/kernel` -> its value.
Values = Mapping[str, np.ndarray]


@dataclasses.dataclass(frozen=True)
class Start:
    """Initial values and the round of a training.

    Attributes:
      values: The server's variables; of those that clients keep, what they start from.
      clients: By client, values of its own, which it keeps where they are local in the
        model that is trained.
      rounds: How many rounds went before: cohorts, the order of examples and the learning rate
        go on from there instead of repeating themselves.
    """

    values: Values
    clients: Mapping[int, Values] = dataclasses.field(default_factory=dict)
    rounds: int = 0

    def server_state(self, process: FederatedProcess, initial: ServerState) -> ServerState:
        """Returns a server state with these values.

        Raises:
          ValueError: If a global variable is missing, or the shape of any differs.
        """
        self.check(process.model)
        own = values_of(process.model, Variables(initial.weights, initial.initial_local))
        # Local ones may be new: an auxiliary network, or conditioning.
        state = process.with_weights(initial, [self.values.get(path, own[path]) for path in own])
        return state._replace(round=np.int32(self.rounds))

    def check(self, model: Model) -> None:
        """Raises ValueError if a global variable is missing, or the shape of any differs."""
        missing = [s.path for s in model.specs if not s.local and s.path not in self.values]
        if missing:
            raise ValueError(
                f"The model that training is to start from has no {', '.join(missing)}; it has: "
                f"{', '.join(self.values)}. Start from a run with the same network."
            )
        for spec in model.specs:
            found = np.shape(self.values.get(spec.path, np.empty(spec.shape)))
            if found != spec.shape:
                raise ValueError(
                    f"Variable {spec.path} has shape {spec.shape}; the model that training is to "
                    f"start from has {found}. Start from a run with the same network."
                )

    def client_states(
        self, process: FederatedProcess, seed: int, server_state: ServerState, num_clients: int
    ) -> Iterable[tuple[int, ClientState]]:
        """Yields the state of each client in `clients`.

        Args:
          process: What is trained.
          seed: Of the run.
          server_state: What training begins with.
          num_clients: Size of the population.

        Raises:
          ValueError: If a client is not in the population, or the shape of a variable differs.
        """
        if outside := sorted(c for c in self.clients if not 0 <= c < num_clients):
            raise ValueError(
                f"Training is to start with values of client {outside[0]}; the population has "
                f"clients 0 to {num_clients - 1}. Give clients by their place in it."
            )
        model = process.model
        for client, values in self.clients.items():
            state = process.init_state(client, seed, server_state)
            own = values_of(model, Variables(server_state.weights, state.model))
            taken = [np.asarray(values.get(path, v), v.dtype) for path, v in own.items()]
            for spec, value in zip(model.specs, taken, strict=True):
                if spec.local and value.shape != spec.shape:
                    raise ValueError(
                        f"Client {client}: variable {spec.path} has shape {spec.shape}, found "
                        f"{value.shape}."
                    )
            # Not 0, which says that a client has nothing of its own yet.
            yield (
                client,
                state._replace(
                    model=model.split(taken).local_weights, rounds=np.int32(max(state.rounds, 1))
                ),
            )

    def fingerprint(self) -> str:
        """SHA-256 (hex) over all values with their paths and owners."""
        digest = hashlib.sha256(str(self.rounds).encode())
        for owner, values in (("", self.values), *sorted(self.clients.items())):
            for path in sorted(values):
                value = np.ascontiguousarray(values[path])
                digest.update(f"{owner} {path} {value.dtype.str} {value.shape}\n".encode())
                digest.update(value.tobytes())
        return digest.hexdigest()


def values_of(model: Model, variables: Variables) -> dict[str, np.ndarray]:
    """Returns a model's variables by path, in its order."""
    flat = model.join(variables)
    return {spec.path: np.asarray(v) for spec, v in zip(model.specs, flat, strict=True)}


def after(
    process: FederatedProcess,
    state: ServerState,
    client_states: ClientStates | None = None,
    clients: Iterable[int] = (),
) -> Start:
    """Returns where another training can go on from this one.

    Args:
      process: What was trained.
      state: The server's state.
      client_states: The clients', where some are to keep what they have.
      clients: Which.
    """
    values = values_of(process.model, Variables(state.weights, state.initial_local))
    own = {}
    if client_states is not None:
        for client in clients:
            variables = Variables(state.weights, client_states.get(client, state).model)
            own[client] = values_of(process.model, variables)
    return Start(values, own, int(state.round))


def write(folder: Path, start: Start, name: str = FILE) -> None:
    """Keeps the server's variables in a file of a folder, by path, and the rounds."""
    with writing.complete(folder / name) as file:
        arrays = {**start.values, _ROUNDS: np.asarray(start.rounds)}
        np.savez(file, **arrays)


def read(place: Path) -> Start:
    """Reads what `write` has written, or values from anywhere.

    Args:
      place: The folder of a finished run, or an `.npz` file: float arrays by the paths of variables
        (`dense_1/kernel`), and, if rounds went before, their number as `rounds`.

    Raises:
      FileNotFoundError: If there is no such file, or the folder has no finished run.
      ValueError: If the file is damaged.
    """
    is_file = place.suffix == ".npz"
    path = place if is_file else place / FILE
    if is_file and not path.exists():
        raise FileNotFoundError(
            f"There is no {path}: write it with --save_initial_weights, or with np.savez and "
            "variables by path, such as 'dense_1/kernel'."
        )
    if not path.exists():
        raise FileNotFoundError(
            f"There is no {path}: a run that training starts from has to be finished. Give the "
            "folder of one method, such as OUTPUT_DIR/fed_avg."
        )
    try:
        with np.load(path, allow_pickle=False) as saved:
            values = {name: saved[name] for name in saved.files}
        rounds = values.pop(_ROUNDS, np.zeros([], int)) if is_file else values.pop(_ROUNDS)
        if rounds.shape or not np.issubdtype(rounds.dtype, np.integer):
            raise ValueError(f"{_ROUNDS}: expected one whole number")
        Number(0, INT32, is_whole=True).check(_ROUNDS, rounds.item())
        for name, value in values.items():
            if not np.issubdtype(value.dtype, np.floating) or not np.isfinite(value).all():
                raise ValueError(f"{name}: expected finite numbers with a decimal point")
    # zipfile and NumPy raise what they like on damaged bytes.
    except Exception as error:
        again = "Write it" if is_file else "Make the run"
        raise ValueError(f"{path} is damaged ({error}). {again} again.") from error
    return Start(values, rounds=int(rounds))
