"""All clients' updates beside one another, for a server step that looks at each of them.

An aggregator takes nothing that the server holds (`federated_aggregate` refuses a zero of the
server's), so it cannot evaluate models on the server's examples. This one only brings the updates
there, signed, and in an order that does not depend on which came first. The server sees each of
them and holds all of a cohort's at a time: this is for few clients, as at the edge.
"""

import collections
from typing import Any, NamedTuple

import tensorflow as tf

from tff_het.backend.names import tff
from tff_het.learning.client_work import ClientResult, ClientWork, Download
from tff_het.learning.types import computation, type_of
from tff_het.models.model import ClientContext


class Signed(NamedTuple):
    """An update and whose it is; of several clients, each tensor has a leading dimension [k].

    Attributes:
      client: int32 [], the client's index in the population; int32 [k] ascending.
      change: The update; of several, [k, ...].
    """

    client: Any
    change: Any


def signed(work: ClientWork) -> ClientWork:
    """The same work, with the client's index in its update."""

    def train(download: Download, examples: Any, client: ClientContext, *rest: Any) -> ClientResult:
        result = work.train(download, examples, client, *rest)
        return result._replace(update=Signed(client.index, result.update))

    return work._replace(train=train)


class StackFactory(tff.aggregators.WeightedAggregationFactory):
    """Gives a round's `Signed` updates as one, in ascending order of clients.

    A client whose weight is 0, as that of one without examples, is left out; weights say nothing
    else.
    """

    def create(
        self, value_type: tff.Type, weight_type: tff.Type
    ) -> tff.templates.AggregationProcess:
        """Creates the process for updates of a type.

        Raises:
          TypeError: If they are not `Signed`, or a tensor has no fixed shape.
        """
        if not isinstance(value_type, tff.StructType) or (
            tff.structure.name_list_with_nones(value_type) != list(Signed._fields)
        ):
            raise TypeError(
                "Only updates that say whose they are can be put in order: wrap the client work in "
                f"`signed`. Found {value_type.compact_representation()}."
            )
        specs = tff.types.type_to_tf_tensor_specs(value_type)
        if not all(spec.shape.is_fully_defined() for spec in tf.nest.flatten(specs)):
            raise TypeError(
                "Only tensors of fixed shapes can be stacked, found "
                f"{value_type.compact_representation()}."
            )
        sent_type = tff.to_type(collections.OrderedDict(value=value_type, weight=weight_type))
        several = lambda spec: tf.TensorSpec([None, *spec.shape], spec.dtype)  # noqa: E731
        stack_type = type_of(tf.nest.map_structure(several, specs))

        @tff.tensorflow.computation
        def nothing():
            return tf.nest.map_structure(lambda s: tf.zeros([0, *s.shape], s.dtype), specs)

        def append(stack: Signed, sent) -> Signed:
            times = tf.cast(sent["weight"] > 0, tf.int32)
            return tf.nest.map_structure(
                lambda rows, row: tf.concat([rows, tf.repeat(row[tf.newaxis], times, axis=0)], 0),
                stack,
                sent["value"],
            )

        def join(one: Signed, other: Signed) -> Signed:
            return tf.nest.map_structure(lambda *rows: tf.concat(rows, 0), one, other)

        def in_order(stack: Signed) -> Signed:
            order = tf.argsort(stack.client, stable=True)
            return tf.nest.map_structure(lambda rows: tf.gather(rows, order), stack)

        append_fn = computation(append, stack_type, sent_type)
        join_fn = computation(join, stack_type, stack_type)
        in_order_fn = computation(in_order, stack_type)

        @tff.federated_computation
        def init_fn():
            return tff.federated_value((), tff.SERVER)

        @tff.federated_computation(
            init_fn.type_signature.result,
            tff.FederatedType(value_type, tff.CLIENTS),
            tff.FederatedType(weight_type, tff.CLIENTS),
        )
        def next_fn(state, value, weight):
            sent = tff.federated_zip(collections.OrderedDict(value=value, weight=weight))
            result = tff.federated_aggregate(sent, nothing(), append_fn, join_fn, in_order_fn)
            return tff.templates.MeasuredProcessOutput(
                state, result, tff.federated_value((), tff.SERVER)
            )

        return tff.templates.AggregationProcess(init_fn, next_fn)
