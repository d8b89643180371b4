"""Processes that carry client state: the half that TFF's templates leave out.

`compose` puts a process together from the parts that
`tff.learning.templates.compose_learning_process` takes as well: distributor,
client work, aggregator and finalizer. What is new is that clients keep a state.
"""

import collections
import functools
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_het import seeding
from tff_het.learning import example_files
from tff_het.learning import server_step as server_steps
from tff_het.learning.client_work import ClientState, ClientWork, Download, Mean
from tff_het.learning.types import computation, type_of
from tff_het.models.model import ClientContext, Model, Variables, Weights

AggregationFactory: TypeAlias = (
    tff.aggregators.WeightedAggregationFactory | tff.aggregators.UnweightedAggregationFactory
)


class ServerState(NamedTuple):
    """What the server keeps.

    Attributes:
      round: int32 [], rounds done.
      weights: The global variables.
      initial_local: What a client's local variables start from (not sent in rounds).
      distributor: State of the distributor.
      aggregator: State of the aggregator.
      server_step: State of the server step: an optimizer's, data to select on.
    """

    round: Any
    weights: Weights
    initial_local: Weights
    distributor: Any
    aggregator: Any
    server_step: Any


class ProcessOutput(NamedTuple):
    """Result of `next`: `client_states` is a list of {client, state} in any order."""

    state: Any
    metrics: Any
    client_states: Any


# (client's index, seed of the run, server state) -> the first local variables.
InitialLocal = Callable[[int, int, ServerState], Weights]


def shared_start(client: int, seed: int, state: ServerState) -> Weights:
    """Every client starts from the server's initial local variables."""
    del client, seed
    return state.initial_local


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

    `next` is `client_update` followed by `server_update`. Build with `compose`.
    """

    def __init__(
        self,
        *,
        model: Model,
        initialize_fn: tff.Computation,
        next_fn: tff.Computation,
        client_update: tff.Computation,
        server_update: tff.Computation,
        initial_work: Callable[[int], Any],
        initial_local: InitialLocal,
        reading_files: Callable[[], "FederatedProcess"],
    ):
        super().__init__(initialize_fn, next_fn)
        self.model = model
        self.client_update = client_update
        self.server_update = server_update
        self._initial_work = initial_work
        self._initial_local = initial_local
        self._reading_files = reading_files
        self._predict_lock = threading.Lock()
        self._predict_batches: dict[tuple[tuple[str, ...], bool], Callable[..., Any]] = {}

    @functools.cached_property
    def reading_files(self) -> "FederatedProcess":
        """The same process, but for `examples`, which are the path of a file (`example_files`)."""
        return self._reading_files()

    def download(self, state: ServerState) -> dict[str, Any]:
        """Returns what `client_update` takes from the server: what it distributes, and how."""
        return collections.OrderedDict(
            weights=state.weights, round=state.round, distributor=state.distributor
        )

    def init_state(self, client: int, seed: int, server_state: ServerState) -> ClientState:
        """Returns the state of a client that has not trained yet, as NumPy arrays.

        Args:
          client: The client's index in the population.
          seed: The seed of the run.
          server_state: The server's state when the client is first met.
        """
        work_seed = seeding.integer_seed(seed, seeding.CLIENT_STATE, client)
        state = ClientState(
            model=self._initial_local(client, seed, server_state),
            work=self._initial_work(work_seed),
            rounds=np.int32(0),
        )
        return tf.nest.map_structure(np.asarray, state)

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
        flat = self.model.join(values)
        for spec, value in zip(self.model.specs, flat, strict=True):
            if tuple(np.shape(value)) != spec.shape:
                raise ValueError(
                    f"Variable {spec.path} has shape {spec.shape}, found {np.shape(value)}."
                )
        cast = [
            np.asarray(value, spec.dtype.as_numpy_dtype)
            for spec, value in zip(self.model.specs, flat, strict=True)
        ]
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
        seed: Sequence[int] = (0, 0),
        training: bool = False,
        batch_size: int = 1000,
    ) -> dict[str, np.ndarray]:
        """Returns the model's outputs for a client's examples.

        Args:
          weights: The global variables.
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
        variables = tf.nest.map_structure(
            tf.convert_to_tensor, Variables(weights, client_state.model)
        )
        context = tf.nest.map_structure(
            lambda value: tf.convert_to_tensor(value, tf.int32),
            ClientContext(client, num_examples, client_state.rounds),
        )
        predict_batch = self._predict_batch(tuple(examples), training)
        parts = []
        for start in range(0, max(given, 1), batch_size):
            batch = {name: column[start : start + batch_size] for name, column in examples.items()}
            batch_seed = tf.add(tf.convert_to_tensor(seed, tf.int32), [start, 0])
            parts.append(predict_batch(variables, batch, context, batch_seed))
        return {name: np.concatenate([part[name].numpy() for part in parts]) for name in parts[0]}

    def _predict_batch(self, columns: tuple[str, ...], training: bool) -> Callable[..., Any]:
        """`Model.predict`, traced once for batches of any size, whichever threads ask."""
        scalar = tf.TensorSpec([], tf.int32)
        with self._predict_lock:
            if (columns, training) not in self._predict_batches:
                self._predict_batches[columns, training] = tf.function(
                    lambda variables, batch, context, seed: self.model.predict(
                        variables, batch, context, seed, training
                    ),
                    input_signature=[
                        self.model.tensor_specs,
                        {name: self.model.example_spec[name] for name in columns},
                        ClientContext(scalar, scalar, scalar),
                        tf.TensorSpec([2], tf.int32),
                    ],
                ).get_concrete_function()
            return self._predict_batches[columns, training]

    def as_learning_process(self) -> tff.learning.templates.LearningProcess:
        """Returns a `tff.learning` process over clients' {<client, seed, examples>}.

        Raises:
          ValueError: If clients keep anything, which such a process cannot carry.
        """
        client_type = self.next.type_signature.parameter[1].member
        kept = client_type["state"]
        if len(kept["model"]["trainable"]) + len(kept["model"]["non_trainable"]) or not (
            _is_empty(kept["work"])
        ):
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
            state = ClientState(Weights([], []), self._initial_work(0), tf.zeros([], tf.int32))
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


def compose(
    model: Model,
    client_work: ClientWork,
    *,
    seed: int,
    aggregator: AggregationFactory | None = None,
    server_step: tff.learning.templates.FinalizerProcess | None = None,
    distributor: tff.learning.templates.DistributionProcess | None = None,
    initial_local: InitialLocal = shared_start,
    examples_in_files: bool = False,
) -> FederatedProcess:
    """Composes a process from its parts.

    Args:
      model: The model.
      client_work: What a client does.
      seed: The model's initial values follow from it.
      aggregator: How updates are combined; the mean weighted by
        `ClientResult.weight` by default. Any factory of `tff.aggregators` or
        `tff.learning` will do.
      server_step: (state, weights, aggregate) -> new weights, with weights as
        `Weights`; `server_step.apply_update(model)`, which takes any optimizer of
        `tff.learning`, by default. (TFF's own finalizers expect its `ModelWeights`.)
      distributor: How the global variables reach the clients; a plain broadcast
        by default.
      initial_local: What a client's local variables start from.
      examples_in_files: Whether clients' examples are given as paths of files;
        see `FederatedProcess.reading_files`.

    Raises:
      ValueError: If a part is given where nothing travels: the model has no
        global variables.
    """
    reading_files = functools.partial(
        compose,
        model,
        client_work,
        seed=seed,
        aggregator=aggregator,
        server_step=server_step,
        distributor=distributor,
        initial_local=initial_local,
        examples_in_files=True,
    )
    weights_type = type_of(model.tensor_specs.global_weights)
    anything_travels = model.num_global_parameters > 0
    if not anything_travels and (aggregator, server_step, distributor) != (None, None, None):
        raise ValueError(
            "All of the model's variables are local, so there is nothing to distribute, aggregate "
            "or update at the server: leave these parts out."
        )
    if distributor is None:
        distributor = tff.learning.templates.build_broadcast_process(weights_type)
    if server_step is None:
        server_step = server_steps.apply_update(model)

    client_type = _client_type(model, client_work, examples_in_files)
    run_client = _client_computation(model, client_work, weights_type, client_type)
    sent_type = run_client.type_signature.result
    aggregation = _aggregation(aggregator, sent_type) if anything_travels else None

    @tff.tensorflow.computation
    def initial_variables():
        return model.initial_variables(seed)

    @tff.tensorflow.computation
    def zero():
        return tf.zeros([], tf.int32)

    @tff.federated_computation
    def initialize_fn():
        variables = tff.federated_eval(initial_variables, tff.SERVER)
        nothing = tff.federated_value((), tff.SERVER)
        return tff.federated_zip(
            ServerState(
                round=tff.federated_eval(zero, tff.SERVER),
                weights=variables.global_weights,
                initial_local=variables.local_weights,
                distributor=distributor.initialize(),
                aggregator=aggregation.initialize() if aggregation else nothing,
                server_step=server_step.initialize(),
            )
        )

    state_type = initialize_fn.type_signature.result
    at_clients = tff.FederatedType(client_type, tff.CLIENTS)

    def train_clients(weights, round_num, clients):
        """Runs the clients on what has reached them."""
        sent_round = (tff.federated_broadcast(round_num),) if client_work.uses_round else ()
        return tff.federated_map(run_client, (weights, *sent_round, clients))

    def combine(state, distributor_state, sent):
        """Aggregates what the clients sent and updates the server."""
        sums = tff.federated_sum(sent.metrics)
        metrics = collections.OrderedDict(train=tff.federated_map(_finalize(sums), sums))
        if aggregation:
            weighted = (sent.weight,) if aggregation.is_weighted else ()
            combined = aggregation.next(state.aggregator, sent.update, *weighted)
            stepped = server_step.next(state.server_step, state.weights, combined.result)
            aggregator_state, step_state = combined.state, stepped.state
            weights = stepped.result
            metrics["aggregator"] = combined.measurements
            metrics["server_step"] = stepped.measurements
        else:
            aggregator_state, step_state = state.aggregator, state.server_step
            weights = state.weights
        new_state = tff.federated_zip(
            ServerState(
                round=tff.federated_map(_increment, state.round),
                weights=weights,
                initial_local=state.initial_local,
                distributor=distributor_state,
                aggregator=aggregator_state,
                server_step=step_state,
            )
        )
        return new_state, tff.federated_zip(metrics)

    @tff.federated_computation(state_type, at_clients)
    def next_fn(state, clients):
        distributed = distributor.next(state.distributor, state.weights)
        sent = train_clients(distributed.result, state.round, clients)
        state, metrics = combine(state, distributed.state, sent)
        kept = collections.OrderedDict(client=sent.client, state=sent.state)
        return ProcessOutput(state, metrics, tff.federated_zip(kept))

    download_type = tff.to_type(
        collections.OrderedDict(
            weights=weights_type,
            round=tff.TensorType(np.int32),
            distributor=distributor.state_type.member,
        )
    )

    @tff.federated_computation(tff.FederatedType(download_type, tff.SERVER), at_clients)
    def client_update(download, clients):
        distributed = distributor.next(download.distributor, download.weights)
        return train_clients(distributed.result, download.round, clients)

    upload_type = tff.to_type(
        collections.OrderedDict((name, sent_type[name]) for name in ("update", "weight", "metrics"))
    )

    @tff.federated_computation(state_type, tff.FederatedType(upload_type, tff.CLIENTS))
    def server_update(state, sent):
        # For its state alone: the clients had their download before.
        distributed = distributor.next(state.distributor, state.weights)
        new_state, metrics = combine(state, distributed.state, sent)
        return collections.OrderedDict(state=new_state, metrics=metrics)

    return FederatedProcess(
        model=model,
        initialize_fn=initialize_fn,
        next_fn=next_fn,
        client_update=client_update,
        server_update=server_update,
        initial_work=client_work.initial_work,
        initial_local=initial_local,
        reading_files=reading_files,
    )


def _client_type(model: Model, client_work: ClientWork, in_files: bool) -> tff.Type:
    @tff.tensorflow.computation
    def initial_work():
        return client_work.initial_work(0)

    state = ClientState(
        model=type_of(model.tensor_specs.local_weights),
        work=initial_work.type_signature.result,
        rounds=tff.TensorType(np.int32),
    )
    return tff.to_type(
        collections.OrderedDict(
            client=tff.TensorType(np.int32),
            seed=tff.TensorType(np.int32, [2]),
            examples=(
                tff.TensorType(np.str_)
                if in_files
                else type_of(collections.OrderedDict(model.example_spec))
            ),
            state=state,
        )
    )


def _client_computation(
    model: Model, client_work: ClientWork, weights_type: tff.Type, client_type: tff.Type
) -> tff.Computation:
    """The client work as a computation: (weights[, round], client's input) -> what it gives."""

    def run(weights, round_num, client):
        examples, state = client["examples"], client["state"]
        if isinstance(examples, tf.Tensor):
            examples = example_files.read(examples, model.example_spec)
        num_examples = tf.shape(next(iter(examples.values())))[0]
        context = ClientContext(client["client"], num_examples, state.rounds)
        result = client_work.train(
            Download(weights, round_num), examples, context, client["seed"], state
        )
        return collections.OrderedDict(
            client=client["client"],
            update=result.update,
            weight=result.weight,
            metrics=result.metrics,
            # A client without examples has not trained.
            state=result.state._replace(rounds=state.rounds + tf.minimum(num_examples, 1)),
        )

    if client_work.uses_round:
        return computation(run, weights_type, tff.TensorType(np.int32), client_type)
    return computation(
        lambda weights, client: run(weights, tf.zeros([], tf.int32), client),
        weights_type,
        client_type,
    )


def _aggregation(factory, sent_type) -> tff.templates.AggregationProcess:
    if factory is None:
        # A round in which no client has an example changes nothing.
        factory = tff.aggregators.MeanFactory(no_nan_division=True)
    if isinstance(factory, tff.aggregators.WeightedAggregationFactory):
        return factory.create(sent_type["update"], sent_type["weight"])
    if isinstance(factory, tff.aggregators.UnweightedAggregationFactory):
        return factory.create(sent_type["update"])
    raise TypeError(
        "aggregator must be a factory of tff.aggregators (weighted or unweighted), found "
        f"{type(factory).__name__}."
    )


def _is_empty(value_type: tff.Type) -> bool:
    return isinstance(value_type, tff.StructType) and all(_is_empty(t) for t in value_type)


@tff.tensorflow.computation(np.int32)
def _increment(number):
    return number + 1


def _finalize(sums) -> tff.Computation:
    """Turns summed metrics into numbers: a `Mean` is divided, a sum stays."""

    def finalize(metrics):
        return collections.OrderedDict(
            (name, tf.math.divide_no_nan(*metric) if isinstance(metric, Mean) else metric)
            for name, metric in metrics.items()
        )

    return computation(finalize, sums.type_signature.member)
