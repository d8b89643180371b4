"""The model contract: pure functions of variables that are split into two.

*Global* variables travel between server and clients; *local* variables are
private to a client and kept from round to round. The split is by variable, so
any part of any layer may be local. Nothing here holds a value: variables come
in as tensors, which is what lets one traced function serve every client.
"""

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import tensorflow as tf

# The column that the client work adds to a batch: float32 [b], 1 for an example
# and 0 for what fills up the last short batch.
EXAMPLE_WEIGHT = "example_weight"

Batch = Mapping[str, tf.Tensor]
Outputs = Mapping[str, tf.Tensor]
# (batch, outputs) -> float32 [b], one number an example.
PerExample = Callable[[Batch, Outputs], tf.Tensor]


class Weights(NamedTuple):
    """Tensors (or specs, or arrays) of one side, in the model's order."""

    trainable: list[Any]
    non_trainable: list[Any]


class Variables(NamedTuple):
    """All variables of a model as the client sees them."""

    global_weights: Weights
    local_weights: Weights


class ClientContext(NamedTuple):
    """What a model may know of the client that calls it.

    Attributes:
      index: int32 [], the client's place in the population.
      num_examples: int32 [], how many examples the client holds.
      rounds: int32 [], how often it has trained; 0 means never.
    """

    index: Any
    num_examples: Any
    rounds: Any


class LossOutput(NamedTuple):
    """Result of `Model.loss`.

    Attributes:
      loss: float32 [], what is minimised: the mean over the batch's examples
        (those of weight 0 do not count) plus regularisers.
      outputs: As `Model.predict`.
      variables: The variables with the non-trainable ones updated (moving
        statistics); trainable ones are as given.
    """

    loss: tf.Tensor
    outputs: Outputs
    variables: Variables


@dataclasses.dataclass(frozen=True)
class VariableSpec:
    """One variable: its path (`layer/kernel`), what it holds and whose it is.

    `opponent` says that it is trained on `Model.opponent_loss`, and not on the model's own.
    """

    path: str
    shape: tuple[int, ...]
    dtype: tf.DType
    trainable: bool
    local: bool
    opponent: bool = False

    @property
    def size(self) -> int:
        return math.prod(self.shape)


@dataclasses.dataclass(frozen=True)
class Model:
    """A model as pure functions; see `keras_model.from_keras` for the usual way to one.

    Attributes:
      specs: All variables, in the model's own order.
      example_spec: Columns of a client's examples, shapes with a leading None.
      initial_variables: seed -> initial `Variables`; the same seed gives the
        same values.
      predict: (variables, batch, client, seed, training) -> outputs by name,
        among them `logits` [b, classes].
      loss: (variables, batch, client, seed, training) -> `LossOutput`. `seed` is
        int32 [2] and feeds dropout and sampling; `client` a `ClientContext`.
      metrics: By name, what is averaged over examples while training.
      client_is_input: Whether predictions depend on `client`, so that even without local
        variables no two clients have the same model.
      draws_in_training: Whether predictions with `training` depend on the seed (dropout, sampling).
      opponent_loss: As `loss`, but float32 [] alone: what the variables of the opponent minimise,
        by a step of their own on each batch, before the step in which all others minimise `loss`
        against them. None: there is no opponent.
    """

    specs: tuple[VariableSpec, ...]
    example_spec: Mapping[str, tf.TensorSpec]
    initial_variables: Callable[[int], Variables]
    predict: Callable[[Variables, Batch, ClientContext, Any, bool], Outputs]
    loss: Callable[[Variables, Batch, ClientContext, Any, bool], LossOutput]
    metrics: Mapping[str, PerExample]
    client_is_input: bool = False
    draws_in_training: bool = False
    opponent_loss: Callable[[Variables, Batch, ClientContext, Any, bool], tf.Tensor] | None = None

    def split(self, values: Sequence[Any]) -> Variables:
        """Sorts one value for each variable, in the model's order, into `Variables`."""
        if len(values) != len(self.specs):
            raise ValueError(
                f"The model has {len(self.specs)} variables, found {len(values)} values."
            )

        def pick(local: bool, trainable: bool) -> list[Any]:
            chosen = zip(values, self.specs, strict=True)
            return [v for v, s in chosen if s.local == local and s.trainable == trainable]

        return Variables(
            global_weights=Weights(pick(False, True), pick(False, False)),
            local_weights=Weights(pick(True, True), pick(True, False)),
        )

    def join(self, variables: Variables) -> list[Any]:
        """Undoes `split`: one value for each variable, in the model's order."""
        places, found = self.split(range(len(self.specs))), dict[int, Any]()
        for side, of_side, weights in zip(("global", "local"), places, variables, strict=True):
            for kind, own, values in zip(
                ("trainable", "non-trainable"), of_side, weights, strict=True
            ):
                if len(values) != len(own):
                    raise ValueError(
                        f"The model has {len(own)} {side} {kind} variables, found {len(values)} "
                        "values."
                    )
                found.update(zip(own, values, strict=True))
        return [found[place] for place in range(len(self.specs))]

    @property
    def tensor_specs(self) -> Variables:
        """`tf.TensorSpec`s in the structure of the variables."""
        return self.split([tf.TensorSpec(spec.shape, spec.dtype) for spec in self.specs])

    @property
    def num_parameters(self) -> int:
        return sum(spec.size for spec in self.specs)

    @property
    def num_global_parameters(self) -> int:
        """Count of numbers sent each way in a round, without compression."""
        return sum(spec.size for spec in self.specs if not spec.local)
