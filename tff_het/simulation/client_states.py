"""The store of client states: in memory, or on disk for many clients."""

from collections.abc import Iterable

from tff_het.learning.client_work import ClientState
from tff_het.learning.process import FederatedProcess, ServerState
from tff_het.simulation import checkpoints


class ClientStates:
    """Client states by index; a client that never trained has its initial state.

    With a checkpoint file, states go into it: those kept in memory by `write`,
    otherwise at once, so that memory does not grow with the population.
    """

    def __init__(
        self,
        process: FederatedProcess,
        seed: int,
        saved: checkpoints.Checkpoints | None = None,
        *,
        in_memory: bool = True,
    ):
        """Makes an empty store, or one that continues from a checkpoint file.

        Args:
          process: The process whose clients these are.
          seed: The seed of the run, from which initial states follow.
          saved: The checkpoint file.
          in_memory: Whether states stay in memory once they were used.

        Raises:
          ValueError: If states are to be kept nowhere.
        """
        if saved is None and not in_memory:
            raise ValueError("Without a checkpoint file, client states are kept in memory.")
        self._process = process
        self._seed = seed
        self._saved = saved
        self._in_memory = in_memory
        self._states: dict[int, ClientState] = {}
        self._changed: set[int] = set()

    def get(self, client: int, server_state: ServerState) -> ClientState:
        """Returns a client's state; `server_state` is what a new client would meet."""
        if client in self._states:
            return self._states[client]
        data = self._saved.client_state(client) if self._saved is not None else None
        initial = self._process.init_state(client, self._seed, server_state)
        if data is None:
            return initial
        state = checkpoints.decode(data, initial)
        if self._in_memory:
            self._states[client] = state
        return state

    def put(self, round_num: int, states: Iterable[tuple[int, ClientState]]) -> None:
        """Takes over the states of clients after `round_num` rounds."""
        if self._in_memory:
            for client, state in states:
                self._states[client] = state
                self._changed.add(client)
        else:
            self.write(round_num, states)

    def take_changed(self) -> list[tuple[int, ClientState]]:
        """Returns what was put since the last time and is in memory alone."""
        changed = [(client, self._states[client]) for client in sorted(self._changed)]
        self._changed.clear()
        return changed

    def write(self, round_num: int, changed: Iterable[tuple[int, ClientState]]) -> None:
        """Writes states to the checkpoint file, which is yet to be saved; in any thread."""
        if self._saved is not None:
            self._saved.put_clients(
                round_num, ((client, checkpoints.encode(state)) for client, state in changed)
            )

    def close(self) -> None:
        """Closes the checkpoint file; the states in it cannot be read any more."""
        if self._saved is not None:
            self._saved.close()
