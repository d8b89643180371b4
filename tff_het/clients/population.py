"""A population: every client with its own train, validation and test examples."""

import collections
import dataclasses
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, overload

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


class _Held(NamedTuple):
    """Clients whose examples stand one after another in columns: no objects for each of them."""

    ids: tuple[str, ...]
    groups: tuple[str, ...]
    examples: Mapping[str, Examples]  # By split.
    bounds: Mapping[str, np.ndarray]  # By split, int64 [clients + 1].

    def client(self, index: int) -> Client:
        splits = {}
        for split in _SPLITS:
            begin, end = self.bounds[split][index : index + 2]
            splits[split] = {name: c[begin:end] for name, c in self.examples[split].items()}
        return Client(self.ids[index], **splits, group=self.groups[index])


_NOBODY = _Held((), (), {}, {split: np.zeros(1, np.int64) for split in _SPLITS})


class Population(Sequence[Client]):
    """An immutable sequence of clients whose examples have the same form.

    Clients made from columns are views of these, made when they are asked for: a million of them
    take no more memory than their examples, ids and a few numbers.

    Attributes:
      ids: The clients' ids, in order.
      groups: Their sub-populations, in order; empty names where there are none.
      columns: The columns that all clients hold.
      element_spec: Column -> (dtype, shape of one example), the same for all clients.
      num_train_examples: int64 [clients].
    """

    def __init__(self, clients: Iterable[Client], *, _held: _Held = _NOBODY) -> None:
        """Checks that the clients fit together.

        Args:
          clients: One or more clients.

        Raises:
          ValueError: There are none, two share an id, or two differ in columns, dtypes or shapes.
        """
        self._held, self._given = _held, tuple(clients)
        self.ids: tuple[str, ...] = _held.ids + tuple(client.id for client in self._given)
        if not self.ids:
            raise ValueError("A population needs at least one client; found 0.")
        _check_unique(self.ids)
        self.groups: tuple[str, ...] = _held.groups + tuple(one.group for one in self._given)
        first = self._client(0)
        self.element_spec: Spec = _spec(first.train)
        for client in self._given:
            if _spec(client.train) != self.element_spec:
                raise ValueError(
                    "All clients must hold the same columns, dtypes and shapes of one example;"
                    f" {first.id!r} has {self.element_spec}, {client.id!r} has"
                    f" {_spec(client.train)}."
                )
        self.columns: tuple[str, ...] = tuple(self.element_spec)
        self.num_train_examples: np.ndarray = self.num_examples("train")

    @classmethod
    def from_columns(
        cls,
        ids: Sequence[str],
        examples: Mapping[str, Examples],
        sizes: Mapping[str, np.ndarray],
        groups: Sequence[str] = (),
    ) -> "Population":
        """Builds a population whose clients' examples stand one after another.

        Args:
          ids: The clients' names.
          examples: By split (train, validation, test), columns [n, ...] of the examples of all
            clients in order. They may be memory-mapped; nothing is copied.
          sizes: By split, int [clients], how many each client has.
          groups: The clients' sub-populations; none by default.

        Raises:
          ValueError: The examples are not as many as the sizes say, or do not fit together.
        """
        bounds = {split: np.append(0, np.cumsum(sizes[split], dtype=int)) for split in _SPLITS}
        for split in _SPLITS:
            least = 1 if split == "train" else 0
            sound = len(sizes[split]) == len(ids) and np.all(np.asarray(sizes[split]) >= least)
            if not sound or {*map(len, examples[split].values())} != {bounds[split][-1]}:
                raise ValueError(
                    f"{split}: {len(ids)} clients need as many sizes, for training above 0, and "
                    f"columns as long as their sum; found {len(sizes[split])} sizes."
                )
        groups = tuple(groups) or ("",) * len(ids)
        return cls((), _held=_Held(tuple(ids), groups, examples, bounds))

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

        own, sizes = partition.train, partition.train.sizes
        wanted = np.rint(validation_fraction * sizes).astype(np.int64)
        apart = np.minimum(wanted, sizes - 1)
        held_out = np.zeros(len(own.indices), bool)
        for index in np.flatnonzero(apart):
            rng = seeding.generator(seed, seeding.VALIDATION, index)
            drawn = rng.permutation(int(sizes[index]))[: apart[index]]
            held_out[own.bounds[index] + drawn] = True
        columns_of = {
            "train": _rows(dataset.train, columns, own.indices[~held_out]),
            "validation": _rows(dataset.train, columns, own.indices[held_out]),
            "test": _rows(dataset.test, columns, partition.test.indices),
        }
        numbers = {"train": sizes - apart, "validation": apart, "test": partition.test.sizes}
        return cls.from_columns(partition.client_ids, columns_of, numbers, partition.groups)

    def num_examples(self, split: str) -> np.ndarray:
        """Returns how many examples of a split each client has, int64 [clients]."""
        given = [len(next(iter(getattr(one, split).values()))) for one in self._given]
        return np.append(np.diff(self._held.bounds[split]), np.array(given, np.int64))

    def column(self, split: str, name: str) -> np.ndarray:
        """Returns a column of all clients' examples of a split, one after another."""
        held = [self._held.examples[split][name]] if self._held.ids else []
        parts = [*held, *(getattr(client, split)[name] for client in self._given)]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def validation_fingerprint(self) -> str | None:
        """SHA-256 (hex) over who has which validation examples; None where nobody has any."""
        sizes = self.num_examples("validation")
        if not sizes.any():
            return None
        columns = [self.column("validation", name) for name in sorted(self.columns)]
        digest, ends = hashlib.sha256(), np.cumsum(sizes)
        for client_id, size, end in zip(self.ids, sizes.tolist(), ends.tolist(), strict=True):
            digest.update(f"{client_id} {size}\n".encode())
            for column in columns:
                digest.update(column[end - size : end].tobytes())
        return digest.hexdigest()

    @overload
    def __getitem__(self, index: int) -> Client: ...

    @overload
    def __getitem__(self, index: slice) -> "Population": ...

    def __getitem__(self, index: int | slice) -> "Client | Population":
        """The client at a place, or the population of the clients in a slice."""
        places = range(len(self))[index]
        return (
            self._client(places)
            if isinstance(places, int)
            else Population(map(self._client, places))
        )

    def _client(self, index: int) -> Client:
        held = len(self._held.ids)
        return self._held.client(index) if index < held else self._given[index - held]

    def __len__(self) -> int:
        """Number of clients."""
        return len(self.ids)

    def grown_by(self, other: Iterable[Client]) -> "Population":
        """This population followed by further clients; this one stays as it is.

        Args:
          other: Clients (a population, for example) with ids of their own.

        Returns:
          The larger population. Present clients keep their places.

        Raises:
          ValueError: An id is taken already, or examples differ in form.
        """
        return Population((*self._given, *other), _held=self._held)

    def with_pooled(self, client_id: str = "pooled") -> "Population":
        """This population followed by a client with the training examples of all.

        Centralised training is a schedule of that client alone. It holds the examples in the order
        of the clients, and nothing for validation or test: to test the clients, test those who own
        the examples.

        Args:
          client_id: The additional client's id.

        Returns:
          The larger population; the pooled client is the last one.

        Raises:
          ValueError: The id is taken already.
        """
        train = {name: self.column("train", name) for name in self.columns}
        nothing = {name: column[:0] for name, column in train.items()}
        return self.grown_by([Client(client_id, train, nothing, nothing)])


def _rows(examples: Examples, columns: Sequence[str], rows: np.ndarray) -> Examples:
    """Copies rows, once, into arrays that nobody can change by accident."""
    copies = {key: examples[key][rows] for key in columns}
    for copy in copies.values():
        copy.flags.writeable = False
    return copies


def _spec(examples: Mapping[str, np.ndarray]) -> Spec:
    return {key: (column.dtype, column.shape[1:]) for key, column in examples.items()}


def _check_unique(ids: Sequence[str]) -> None:
    if len(set(ids)) < len(ids):
        repeated = [client_id for client_id, n in collections.Counter(ids).items() if n > 1]
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
