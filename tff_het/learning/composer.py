"""Puts a process together from its parts.

`compose` takes parts that `tff.learning.templates.compose_learning_process`
takes as well: client work, aggregator and server step. What is new is that clients keep a state.
"""

import collections
import functools
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import tensorflow as tf

from tff_het import kept
from tff_het.backend.names import tff
from tff_het.learning import example_files
from tff_het.learning import server_step as server_steps
from tff_het.learning.client_work import ClientState, ClientWork, Download, Mean
from tff_het.learning.process import FederatedProcess, ProcessOutput, ServerState
from tff_het.learning.server_step import ServerStep
from tff_het.learning.types import computation, specs_of, type_of
from tff_het.models.model import ClientContext, Model

AggregationFactory: TypeAlias = (
    tff.aggregators.WeightedAggregationFactory | tff.aggregators.UnweightedAggregationFactory
)


def compose(
    model: Model,
    client_work: ClientWork,
    *,
    seed: int,
    aggregator: AggregationFactory | None = None,
    server_step: ServerStep | None = None,
    examples_in_files: bool = False,
) -> FederatedProcess:
    """Composes a process from its parts.

    The computations of a round do not depend on the seed. They are kept (`tff_het.kept`): a second
    process of equal parts shares those of the first, compiled.

    Args:
      model: The model.
      client_work: What a client does.
      seed: The model's initial values follow from it.
      aggregator: How updates are combined; the mean weighted by
        `ClientResult.weight` by default. Any factory of `tff.aggregators` or
        `tff.learning` will do.
      server_step: What the server does with the combination; `server_step.apply_update(model)`,
        which takes any optimizer of `tff.learning`, by default.
      examples_in_files: Whether clients' examples are given as paths of files;
        see `FederatedProcess.reading_files`.

    Raises:
      ValueError: If a part is given where nothing travels: the model has no
        global variables.
      TypeError: If `aggregator` is no such factory.
    """
    again = functools.partial(compose, model, client_work, seed=seed, aggregator=aggregator)
    reading_files = functools.partial(again, server_step=server_step, examples_in_files=True)
    if model.num_global_parameters == 0 and (aggregator, server_step) != (None, None):
        raise ValueError(
            "All of the model's variables are local, so there is nothing to aggregate or update at "
            "the server: leave these parts out."
        )
    if server_step is None:
        server_step = server_steps.apply_update(model)
    first_step_state = server_step.initial
    rounds = _rounds(
        model,
        client_work,
        aggregator,
        server_step.step,
        server_step.counts_participants,
        specs_of(first_step_state()),
        examples_in_files,
    )

    @tff.tensorflow.computation
    def first_values():
        variables = model.initial_variables(seed)
        step_state = tf.nest.map_structure(tf.convert_to_tensor, first_step_state())
        return ServerState(tf.zeros([], tf.int32), *variables, (), step_state)

    return FederatedProcess(
        model=model,
        initialize_fn=rounds.starting_from(first_values),
        rounds=rounds,
        client_work=client_work,
        reading_files=reading_files,
    )


class Rounds:
    """The computations of a round; see `FederatedProcess`."""

    def __init__(
        self,
        model: Model,
        client_work: ClientWork,
        aggregator: AggregationFactory | None,
        step: Callable[..., Any],
        counts_participants: bool,
        step_specs: Any,
        examples_in_files: bool,
    ):
        types = ServerState(
            round=tff.TensorType(np.int32),
            weights=type_of(model.tensor_specs.global_weights),
            initial_local=type_of(model.tensor_specs.local_weights),
            aggregator=(),
            server_step=type_of(step_specs),
        )
        self._reads = client_work.reads
        self._download_type = client_work.reads(types)
        client_type = _client_type(model, client_work, step_specs, examples_in_files)
        self._at_clients = tff.FederatedType(client_type, tff.CLIENTS)
        sent_type = tff.to_type(_present(self._download_type, self._download_type))
        self._run_client = _client_computation(model, client_work, sent_type, client_type)
        upload = self._run_client.type_signature.result
        self._upload_type = tff.to_type(
            collections.OrderedDict(
                (name, upload[name]) for name in ("update", "weight", "metrics")
            )
        )
        self._counts_participants = counts_participants
        self._aggregation = self._step = None
        if model.num_global_parameters:
            self._aggregation = _aggregation(aggregator, upload)
            combined_type = self._aggregation.next.type_signature.result.result.member
            counted = [tff.TensorType(np.float32)] * counts_participants
            self._step = computation(
                step, types.server_step, types.weights, combined_type, *counted
            )
            types = types._replace(aggregator=self._aggregation.state_type.member)
        self._state_type = tff.FederatedType(types, tff.SERVER)

        @tff.federated_computation(self._state_type, self._at_clients)
        def next_fn(state, clients):
            sent = self._train_clients(self._reads(state), clients)
            state, metrics = self._combine(state, sent)
            kept_by_clients = collections.OrderedDict(client=sent.client, state=sent.state)
            return ProcessOutput(state, metrics, tff.federated_zip(kept_by_clients))

        self.next = next_fn

    def starting_from(self, first_values: tff.Computation) -> tff.Computation:
        """Returns `initialize`: a server state with these values, and the parts' own states."""

        @tff.federated_computation
        def initialize_fn():
            values = tff.federated_eval(first_values, tff.SERVER)
            nothing = tff.federated_value((), tff.SERVER)
            return tff.federated_zip(
                ServerState(
                    round=values.round,
                    weights=values.weights,
                    initial_local=values.initial_local,
                    aggregator=self._aggregation.initialize() if self._aggregation else nothing,
                    server_step=values.server_step,
                )
            )

        return initialize_fn

    @functools.cached_property
    def client_update(self) -> tff.Computation:
        download_type = tff.FederatedType(tff.to_type(self._download_type), tff.SERVER)

        @tff.federated_computation(download_type, self._at_clients)
        def client_update(download, clients):
            return self._train_clients(download, clients)

        return client_update

    @functools.cached_property
    def server_update(self) -> tff.Computation:
        @tff.federated_computation(
            self._state_type, tff.FederatedType(self._upload_type, tff.CLIENTS)
        )
        def server_update(state, sent):
            new_state, metrics = self._combine(state, sent)
            return collections.OrderedDict(state=new_state, metrics=metrics)

        return server_update

    def _train_clients(self, download, clients):
        """Runs the clients on what they read of the server's state."""
        parts = _present(download, self._download_type)
        sent = collections.OrderedDict(
            (name, tff.federated_broadcast(part)) for name, part in parts.items()
        )
        return tff.federated_map(self._run_client, (sent, clients))

    def _combine(self, state, sent):
        """Aggregates what the clients sent and updates the server."""
        sums = tff.federated_sum(sent.metrics)
        metrics = collections.OrderedDict(train=tff.federated_map(_finalize(sums), sums))
        aggregator_state, step_state, weights = state.aggregator, state.server_step, state.weights
        if self._aggregation:
            weighted = (sent.weight,) if self._aggregation.is_weighted else ()
            combined = self._aggregation.next(state.aggregator, sent.update, *weighted)
            aggregator_state = combined.state
            taken = [state.server_step, state.weights, combined.result]
            if self._counts_participants:
                taken.append(tff.federated_sum(tff.federated_map(_sign, sent.weight)))
            step_state, weights, measured = tff.federated_map(self._step, tuple(taken))
            metrics["aggregator"] = combined.measurements
            metrics["server_step"] = measured
        new_state = tff.federated_zip(
            ServerState(
                round=tff.federated_map(_increment, state.round),
                weights=weights,
                initial_local=state.initial_local,
                aggregator=aggregator_state,
                server_step=step_state,
            )
        )
        return new_state, tff.federated_zip(metrics)


@kept.by_content(size=32)
def _rounds(*parts: Any) -> Rounds:
    return Rounds(*parts)


def _client_type(
    model: Model, client_work: ClientWork, step_specs: Any, in_files: bool
) -> tff.Type:
    zeros = tf.nest.map_structure(
        lambda spec: np.zeros(spec.shape, spec.dtype.as_numpy_dtype),
        ServerState(tf.TensorSpec([], tf.int32), *model.tensor_specs, (), step_specs),
    )
    first = client_work.init(0, 0, zeros)
    state = ClientState(
        model=type_of(model.tensor_specs.local_weights),
        work=type_of(specs_of(first.work)),
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
    model: Model, client_work: ClientWork, sent_type: tff.Type, client_type: tff.Type
) -> tff.Computation:
    """The client work as a computation: (what is downloaded, client's input) -> what it gives."""

    def run(download, client):
        examples, state = client["examples"], client["state"]
        if isinstance(examples, tf.Tensor):
            examples = example_files.read(examples, model.example_spec)
        num_examples = tf.shape(next(iter(examples.values())))[0]
        context = ClientContext(client["client"], num_examples, state.rounds)
        result = client_work.train(Download(**download), examples, context, client["seed"], state)
        return collections.OrderedDict(
            client=client["client"],
            update=result.update,
            weight=result.weight,
            metrics=result.metrics,
            # A client without examples has not trained.
            state=result.state._replace(rounds=state.rounds + tf.minimum(num_examples, 1)),
        )

    return computation(run, sent_type, client_type)


def _present(download: Any, types: Download) -> collections.OrderedDict:
    """The parts of a download that are not empty, by name."""
    names = [name for name, of in types._asdict().items() if not (isinstance(of, tuple) and not of)]
    return collections.OrderedDict((name, getattr(download, name)) for name in names)


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


_sign = tff.tensorflow.computation(lambda number: tf.sign(number), np.float32)
_increment = tff.tensorflow.computation(lambda number: number + 1, np.int32)


def _finalize(sums) -> tff.Computation:
    """Turns summed metrics into numbers: a `Mean` is divided, a sum stays."""

    def finalize(metrics):
        return collections.OrderedDict(
            (name, tf.math.divide_no_nan(*metric) if isinstance(metric, Mean) else metric)
            for name, metric in metrics.items()
        )

    return computation(finalize, sums.type_signature.member)
