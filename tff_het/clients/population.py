"""A population: every client with its own train, validation and test examples."""

import collections
import dataclasses
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import overload

import numpy as np

from tff_het import seeding
from tff_het.datasets import Dataset, Examples
from tff_het.partitions import Partition

_SPLITS = ("train", "validation", "test")

Spec = dict[str, tuple[np.dtype, tuple[int, ...]]]
"""Column -> dtype and shape of one example."""


@dataclasses.dataclass(frozen=True, eq=False)
class Client:
    """One client and what it holds.

    Attributes:
      id: Its name, different from all others in a population.
      train: Columns of C-contiguous arrays [n, ...], n > 0.
      validation: The same columns; n may be 0.
      test: The same columns; n may be 0.
      group: The sub-population that it is of; empty where there are none.

    Raises:
      ValueError: There are no training examples, or a split's columns differ from those of
        `train` in name, length, dtype or shape of one example.
    """

    id: str
    train: Examples
    validation: Examples
    test: Examples
    group: str = ""

    def __post_init__(self) -> None:
        expected = _spec(self.train)
        for split in _SPLITS:
            examples = getattr(self, split)
            lengths = {key: len(column) for key, column in examples.items()}
            if len(set(lengths.values())) != 1:
                raise ValueError(
                    f"Client {self.id!r}, {split}: columns must be equally long; found {lengths}."
                )
            if _spec(examples) != expected:
                raise ValueError(
                    f"Client {self.id!r}: {split} must have the columns of train, {expected};"
                    f" found {_spec(examples)}."
                )
            contiguous = {key: np.ascontiguousarray(column) for key, column in examples.items()}
            object.__setattr__(self, split, contiguous)
        if not self.num_train_examples:
            raise ValueError(
                f"Client {self.id!r}: at least one training example is needed; found 0."
            )

    @property
    def num_train_examples(self) -> int:
        """Number of training examples, without those set apart for validation."""
        return len(next(iter(self.train.values())))


class Population(Sequence[Client]):
    """An immutable sequence of clients whose examples have the same form.

    Attributes:
      ids: The clients' ids, in order.
      groups: Their sub-populations, in order; empty names where there are none.
      columns: The columns that all clients hold.
      element_spec: Column -> (dtype, shape of one example), the same for all clients.
      num_train_examples: int64 [clients].
    """

    def __init__(self, clients: Iterable[Client]) -> None:
        """Checks that the clients fit together.

        Args:
          clients: One or more clients.

        Raises:
          ValueError: There are none, two share an id, or two differ in columns, dtypes or shapes.
        """
        self._clients = tuple(clients)
        if not self._clients:
            raise ValueError("A population needs at least one client; found 0.")
        self.ids: tuple[str, ...] = tuple(client.id for client in self._clients)
        _check_unique(self.ids)
        self.groups: tuple[str, ...] = tuple(client.group for client in self._clients)
        first = self._clients[0]
        self.element_spec: Spec = _spec(first.train)
        for client in self._clients[1:]:
            if _spec(client.train) != self.element_spec:
                raise ValueError(
                    "All clients must hold the same columns, dtypes and shapes of one example;"
                    f" {first.id!r} has {self.element_spec}, {client.id!r} has"
                    f" {_spec(client.train)}."
                )
        self.columns: tuple[str, ...] = tuple(self.element_spec)
        self.num_train_examples: np.ndarray = np.array(
            [client.num_train_examples for client in self._clients], np.int64
        )

    @classmethod
    def from_partition(
        cls,
        dataset: Dataset,
        partition: Partition,
        *,
        validation_fraction: float = 0.0,
        seed: int = 0,
        columns: Sequence[str] = ("x", "y"),
    ) -> "Population":
        """Builds the population of a partition: each client with its examples.

        Validation examples are cut from the client's own training examples, never from its test
        examples: the nearest whole number to `validation_fraction` of them, drawn at random, but
        always leaving one to train on. What a client draws depends on `seed` and its place in the
        partition only.

        Args:
          dataset: The examples.
          partition: Who owns which of them.
          validation_fraction: In [0, 1): how much of its training examples a client sets apart.
          seed: Decides which.
          columns: The columns that clients hold.

        Returns:
          One client for each in the partition, in its order. Arrays are read-only.

        Raises:
          ValueError: The partition was made for a data set of another size, a column does not
            exist, or the fraction is out of range.
        """
        if not 0 <= validation_fraction < 1:
            raise ValueError(f"validation_fraction must be in [0, 1); found {validation_fraction}.")
        _check_columns(dataset, columns)
        for split, examples in (("train", dataset.train), ("test", dataset.test)):
            made_for = partition.num_train if split == "train" else partition.num_test
            if len(examples["y"]) != made_for:
                raise ValueError(
                    f"Partition {partition.name!r} was made for {made_for} {split} examples; data"
                    f" set {dataset.name!r} has {len(examples['y'])}. Make the partition from this"
                    " data set."
                )

        clients = []
        for index, client_id in enumerate(partition.client_ids):
            own = partition.train[index]
            held_out = np.zeros(len(own), bool)
            size = min(int(np.rint(validation_fraction * len(own))), len(own) - 1)
            rng = seeding.generator(seed, seeding.VALIDATION, index)
            held_out[rng.permutation(len(own))[:size]] = True
            clients.append(
                Client(
                    id=client_id,
                    train=_rows(dataset.train, columns, own[~held_out]),
                    validation=_rows(dataset.train, columns, own[held_out]),
                    test=_rows(dataset.test, columns, partition.test[index]),
                    group=partition.groups[index] if partition.groups else "",
                )
            )
        return cls(clients)

    def validation_fingerprint(self) -> str | None:
        """SHA-256 (hex) over who has which validation examples; None where nobody has any."""
        digest, found = hashlib.sha256(), 0
        for client in self._clients:
            digest.update(f"{client.id} {len(client.validation['y'])}\n".encode())
            for column in sorted(client.validation):
                digest.update(client.validation[column].tobytes())
            found += len(client.validation["y"])
        return digest.hexdigest() if found else None

    @overload
    def __getitem__(self, index: int) -> Client: ...

    @overload
    def __getitem__(self, index: slice) -> "Population": ...

    def __getitem__(self, index: int | slice) -> "Client | Population":
        """The client at a place, or the population of the clients in a slice."""
        if isinstance(index, slice):
            return Population(self._clients[index])
        return self._clients[index]

    def __len__(self) -> int:
        """Number of clients."""
        return len(self._clients)

    def grown_by(self, other: Iterable[Client]) -> "Population":
        """This population followed by further clients; this one stays as it is.

        Args:
          other: Clients (a population, for example) with ids of their own.

        Returns:
          The larger population. Present clients keep their places.

        Raises:
          ValueError: An id is taken already, or examples differ in form.
        """
        return Population((*self._clients, *other))

    def with_pooled(self, client_id: str = "pooled") -> "Population":
        """This population followed by a client with the training examples of all.

        Centralised training is a schedule of that client alone. It holds copies of the examples, in
        the order of the clients, and nothing for validation or test: to test the clients, test
        those who own the examples.

        Args:
          client_id: The additional client's id.

        Returns:
          The larger population; the pooled client is the last one.

        Raises:
          ValueError: The id is taken already.
        """
        train = {
            column: np.concatenate([client.train[column] for client in self._clients])
            for column in self.columns
        }
        for column in train.values():
            column.flags.writeable = False
        nothing = {name: column[:0] for name, column in train.items()}
        return self.grown_by([Client(client_id, train, nothing, nothing)])


def _rows(examples: Examples, columns: Sequence[str], rows: np.ndarray) -> dict[str, np.ndarray]:
    """Copies rows, once, into arrays that nobody can change by accident."""
    copies = {key: examples[key][rows] for key in columns}
    for copy in copies.values():
        copy.flags.writeable = False
    return copies


def _spec(examples: Mapping[str, np.ndarray]) -> Spec:
    return {key: (column.dtype, column.shape[1:]) for key, column in examples.items()}


def _check_unique(ids: Sequence[str]) -> None:
    repeated = [client_id for client_id, n in collections.Counter(ids).items() if n > 1]
    if repeated:
        raise ValueError(
            f"Client ids must be unique; found {len(repeated)} repeated, such as {repeated[0]!r}."
        )


def _check_columns(dataset: Dataset, columns: Sequence[str]) -> None:
    absent = sorted(set(columns) - set(dataset.train))
    if absent or len(set(columns)) != len(columns) or not columns:
        raise ValueError(
            f"columns must be different ones of {sorted(dataset.train)}, which data set"
            f" {dataset.name!r} has; found {list(columns)}."
        )
