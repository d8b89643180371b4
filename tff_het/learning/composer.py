"""Puts a process together from its parts.

`compose` takes the parts that `tff.learning.templates.compose_learning_process`
takes as well: distributor, client work, aggregator and finalizer. What is new is
that clients keep a state.
"""

import collections
import functools
from typing import TypeAlias

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_het.learning import example_files
from tff_het.learning import server_step as server_steps
from tff_het.learning.client_work import ClientState, ClientWork, Download, Mean
from tff_het.learning.process import (
    FederatedProcess,
    InitialLocal,
    ProcessOutput,
    ServerState,
    shared_start,
)
from tff_het.learning.types import computation, type_of
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
        serves=client_work.serves,
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
