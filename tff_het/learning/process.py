"""Processes that carry client state: the half that TFF's templates leave out.

`composer.compose` puts one together.
"""

import collections
import functools
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import tensorflow as tf

from tff_het import kept, seeding
from tff_het.backend import default as default  # Computations are executed in this process.
from tff_het.backend import internals
from tff_het.backend.names import tff
from tff_het.learning.client_work import ClientState, ClientWork, Download, starts_with_nothing
from tff_het.models.model import ClientContext, Model, Variables, Weights

if TYPE_CHECKING:
    from tff_het.learning.composer import Rounds


class ServerState(NamedTuple):
    """What the server keeps.

    Attributes:
      round: int32 [], rounds done.
      weights: The global variables.
      initial_local: What a client's local variables start from (not sent in rounds).
      aggregator: State of the aggregator.
      server_step: State of the server step: an optimizer's, data to select on.
    """

    round: Any
    weights: Weights
    initial_local: Weights
    aggregator: Any
    server_step: Any


class ProcessOutput(NamedTuple):
    """Result of `next`: `client_states` is a list of {client, state} in any order."""

    state: Any
    metrics: Any
    client_states: Any


class _Prediction:
    """`Model.predict` as a graph, called on (variables, batch, context, seed)."""

    def __init__(self, function: Any):
        """Wraps a concrete function."""
        self._function = function
        self._inputs = [(tensor.shape.as_list(), tensor.dtype) for tensor in function.inputs]
        self._types = [tensor.dtype for tensor in function.outputs]
        self.outputs: Mapping[str, tf.Tensor] = function.structured_outputs

    def __call__(self, *arguments: Any) -> Mapping[str, tf.Tensor]:
        """Returns the outputs; raises ValueError if a value has another shape than the model's.

        As an operation: binding arguments to names takes longer than the work of a small batch.
        """
        flat = []
        for value, (shape, dtype) in zip(tf.nest.flatten(arguments), self._inputs, strict=False):
            tensor = value if isinstance(value, tf.Tensor) else internals.eager_tensor(value, dtype)
            found = internals.shape_of(tensor)
            if len(found) != len(shape) or any(
                n not in (None, m) for n, m in zip(shape, found, strict=True)
            ):
                raise ValueError(f"Expected a value of shape {shape}, found {list(found)}.")
            flat.append(tensor)
        flat += self._function.captured_inputs
        found = tf.raw_ops.StatefulPartitionedCall(args=flat, Tout=self._types, f=self._function)
        return tf.nest.pack_sequence_as(self.outputs, found)


class FederatedProcess(tff.templates.IterativeProcess):
    """A federated algorithm whose clients keep a state of their own.

    With C = `<client=int32, seed=int32[2], examples=<x=..., y=...>, state=ClientState>`:

        initialize    : ( -> S@SERVER)
        next          : (<S@SERVER, {C}@CLIENTS> -> <state=S@SERVER, metrics=M@SERVER,
                         client_states={<client, state>}@CLIENTS>)
        client_update : (<download@SERVER, {C}@CLIENTS> ->
                         {<client, update, weight, metrics, state>}@CLIENTS)
        server_update : (<S@SERVER, {<update, weight, metrics>}@CLIENTS> ->
                         <state=S@SERVER, metrics=M@SERVER>)

    `next` is `client_update` followed by `server_update`. Build with `composer.compose`.
    `warnings` says where settings make a method another one (`methods.build`).
    """

    def __init__(
        self,
        *,
        model: Model,
        initialize_fn: tff.Computation,
        rounds: "Rounds",
        client_work: ClientWork,
        reading_files: Callable[[], "FederatedProcess"],
    ):
        super().__init__(initialize_fn, rounds.next)
        self.warnings: tuple[str, ...] = ()
        self.model = model
        self._rounds = rounds
        self._client_work = client_work
        self._reading_files = reading_files
        self._predict_lock = threading.Lock()
        self._predict_batches: dict[tuple[tuple[str, ...], bool], _Prediction] = {}

    @functools.cached_property
    def client_update(self) -> tff.Computation:
        """The clients' half of `next`."""
        return self._rounds.client_update

    @functools.cached_property
    def server_update(self) -> tff.Computation:
        """The server's half of `next`."""
        return self._rounds.server_update

    @functools.cached_property
    def reading_files(self) -> "FederatedProcess":
        """The same process, but for `examples`, which are the path of a file (`example_files`)."""
        return self._reading_files()

    def download(self, state: ServerState) -> Download:
        """Returns what clients read of the server's state, which `client_update` takes."""
        return self._client_work.reads(state)

    def init_state(self, client: int, seed: int, server_state: ServerState) -> ClientState:
        """Returns the state of a client that has not trained yet, as NumPy arrays.

        Args:
          client: The client's index in the population.
          seed: The seed of the run.
          server_state: The server's state when the client is first met.
        """
        own_seed = seeding.integer_seed(seed, seeding.CLIENT_STATE, client)
        state = self._client_work.init(client, own_seed, server_state)
        return tf.nest.map_structure(np.asarray, state)

    @property
    def upload_share(self) -> float:
        """How much of an update a real client would send; see `ClientWork`."""
        return self._client_work.upload_share

    @property
    def adapts(self) -> bool:
        """Whether clients predict with a model of their own making; see `adapt`."""
        return self._client_work.adapt is not None

    def adapt(
        self,
        server_state: ServerState,
        client_state: ClientState,
        examples: Mapping[str, np.ndarray],
        *,
        client: int = 0,
        seed: Sequence[int] | np.ndarray = (0, 0),
    ) -> tuple[Weights, ClientState]:
        """Returns what a client predicts with: fine-tuned, refitted or kept, as the method has it.

        Args:
          server_state: The server's state.
          client_state: The client's.
          examples: What the client trains on, columns [n, ...].
          client: The client's index.
          seed: int32 [2], for the order of examples and dropout.

        Returns:
          Global variables and a state for `predict`; those given, where nothing is adapted.
        """
        if self._client_work.adapt is None:
            return server_state.weights, client_state
        columns = {
            name: tf.convert_to_tensor(examples[name], spec.dtype)
            for name, spec in self.model.example_spec.items()
        }
        number = tf.constant(len(next(iter(columns.values()))), tf.int32)
        context = ClientContext(tf.constant(client), number, tf.constant(int(client_state.rounds)))
        arguments = (self.download(server_state), columns, context, tf.constant(seed, tf.int32))
        tensors = tf.nest.map_structure(tf.convert_to_tensor, (*arguments, client_state))
        adapted = self._adapting(*tensors)
        return adapted.global_weights, client_state._replace(model=adapted.local_weights)

    @functools.cached_property
    def _adapting(self) -> Any:
        return tf.function(self._client_work.adapt, autograph=False, reduce_retracing=True)

    def with_weights(
        self, state: ServerState, weights: Sequence[Any] | Variables | Weights
    ) -> ServerState:
        """Returns the state with other variables, for example from a checkpoint.

        Args:
          state: A server state.
          weights: One array for each variable in the model's order (as Keras's
            `get_weights`), or `Variables`, both of which also set what clients'
            local variables start from; or `Weights`: the global ones alone.

        Raises:
          ValueError: If the number or a shape does not match.
        """
        if isinstance(weights, Weights):
            weights = Variables(weights, state.initial_local)
        values = weights if isinstance(weights, Variables) else self.model.split(list(weights))
        cast = []
        for spec, value in zip(self.model.specs, self.model.join(values), strict=True):
            if tuple(np.shape(value)) != spec.shape:
                raise ValueError(
                    f"Variable {spec.path} has shape {spec.shape}, found {np.shape(value)}."
                )
            cast.append(np.asarray(value, spec.dtype.as_numpy_dtype))
        variables = self.model.split(cast)
        return state._replace(
            weights=variables.global_weights, initial_local=variables.local_weights
        )

    def predict(
        self,
        weights: Weights,
        client_state: ClientState,
        examples: Mapping[str, np.ndarray],
        *,
        client: int = 0,
        num_examples: int | None = None,
        seed: Sequence[int] | np.ndarray = (0, 0),
        training: bool = False,
        batch_size: int = 1000,
    ) -> dict[str, np.ndarray]:
        """Returns the model's outputs for a client's examples.

        Args:
          weights: Global variables, the server's or what `adapt` gives.
          client_state: The client's state.
          examples: Columns [n, ...].
          client: The client's index.
          num_examples: How many examples the client trains on, for models that ask;
            as many as are given by default.
          seed: int32 [2], which matters with `training` (MC-dropout) or sampling.
          training: Whether layers such as dropout act as in training.
          batch_size: Examples in memory at a time.

        Returns:
          Outputs by name, [n, ...] each.
        """
        given = len(next(iter(examples.values())))
        num_examples = given if num_examples is None else num_examples
        variables = Variables(weights, client_state.model)
        context = ClientContext(client, num_examples, client_state.rounds)
        predict_batch = self._predict_batch(tuple(examples), training)
        parts = []
        for start in range(0, max(given, 1), batch_size):
            batch = {name: column[start : start + batch_size] for name, column in examples.items()}
            batch_seed = np.asarray(seed, np.int32) + np.array([start, 0], np.int32)
            parts.append(predict_batch(variables, batch, context, batch_seed))
        return {name: np.concatenate([part[name].numpy() for part in parts]) for name in parts[0]}

    def output_specs(self) -> dict[str, tf.TensorSpec]:
        """Returns what `predict` gives, by name: the specs of its outputs, [None, ...] each."""
        outputs = self._predict_batch(tuple(self.model.example_spec), False).outputs
        return {name: tf.TensorSpec(out.shape, out.dtype) for name, out in outputs.items()}

    def _predict_batch(self, columns: tuple[str, ...], training: bool) -> _Prediction:
        """`Model.predict`, traced once for batches of any size, whichever threads ask."""
        with self._predict_lock:
            if (columns, training) not in self._predict_batches:
                self._predict_batches[columns, training] = _traced(self.model, columns, training)
            return self._predict_batches[columns, training]

    def as_learning_process(self) -> tff.learning.templates.LearningProcess:
        """Returns a `tff.learning` process over clients' {<client, seed, examples>}.

        Raises:
          ValueError: If clients keep anything, which such a process cannot carry.
        """
        client_type = self.next.type_signature.parameter[1].member
        kept = client_type["state"]
        of_kept = tff.types.type_to_tf_tensor_specs(tff.to_type((kept["model"], kept["work"])))
        if tf.nest.flatten(of_kept):
            raise ValueError(
                "A tff.learning process cannot carry client state, but this process has some: "
                f"model {kept['model']}, work {kept['work']}."
            )
        stateless = collections.OrderedDict(
            (name, client_type[name]) for name in ("client", "seed", "examples")
        )
        state_type = self.state_type.member

        @tff.tensorflow.computation(tff.to_type(stateless))
        def with_state(client):
            nothing = Weights([], [])
            state = starts_with_nothing(0, 0, ServerState(0, nothing, nothing, (), ()))
            return collections.OrderedDict(client, state=state)

        @tff.federated_computation(
            self.state_type, tff.FederatedType(tff.to_type(stateless), tff.CLIENTS)
        )
        def next_fn(state, clients):
            output = self.next(state, tff.federated_map(with_state, clients))
            return tff.learning.templates.LearningProcessOutput(output.state, output.metrics)

        @tff.tensorflow.computation(state_type)
        def get_model_weights(state):
            return tff.learning.models.ModelWeights(*state.weights)

        @tff.tensorflow.computation(state_type, get_model_weights.type_signature.result)
        def set_model_weights(state, weights):
            return state._replace(
                weights=Weights(list(weights.trainable), list(weights.non_trainable))
            )

        return tff.learning.templates.LearningProcess(
            self.initialize, next_fn, get_model_weights, set_model_weights
        )


@kept.by_content(size=64)
def _traced(model: Model, columns: tuple[str, ...], training: bool) -> _Prediction:
    scalar = tf.TensorSpec([], tf.int32)
    return _Prediction(
        tf.function(
            lambda variables, batch, context, seed: model.predict(
                variables, batch, context, seed, training
            ),
            input_signature=[
                model.tensor_specs,
                {name: model.example_spec[name] for name in columns},
                ClientContext(scalar, scalar, scalar),
                tf.TensorSpec([2], tf.int32),
            ],
            autograph=False,  # As in training.
        ).get_concrete_function()
    )
