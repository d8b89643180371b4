"""Speaking to a worker of TensorFlow Federated.

Errors come at once instead of retries for ever, and nothing is left that would still speak to a
worker that is gone.
"""

import contextlib
import types
import weakref
from collections.abc import Callable
from typing import Any, TypeVar

import grpc
import tensorflow as tf

from tff_het.backend.names import tff

CHANNEL_OPTIONS = [
    # Instead of 4 MB, less than many models. Protocol buffers themselves end at 2 GB.
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    # An http_proxy in the environment is not meant for workers.
    ("grpc.enable_http_proxy", 0),
]

_Request = TypeVar("_Request")
_Response = TypeVar("_Response")

# A call's error -> why the worker is not there any more; None if it is.
WhyGone = Callable[[grpc.RpcError], Exception | None]


class Stub(tff.framework.RemoteExecutorGrpcStub):
    """A stub that says at once what went wrong.

    The context retries for ever what the stub marks as retryable: UNAVAILABLE, which is what a dead
    worker looks like, and FAILED_PRECONDITION, which any TensorFlow operation may raise.
    """

    def __init__(self, channel: grpc.Channel, why_gone: WhyGone) -> None:
        # The base class also watches the connection, for a flag that nobody reads here, in a thread
        # that prints a traceback if the channel is closed meanwhile.
        super().__init__(
            types.SimpleNamespace(unary_unary=channel.unary_unary, subscribe=lambda *_, **__: None)
        )
        self._why_gone = why_gone

    def _call(self, rpc: Callable[[_Request], _Response], request: _Request) -> _Response:
        try:
            return rpc(request)
        except grpc.RpcError as error:
            if (gone := self._why_gone(error)) is not None:
                raise gone from error
            # TensorFlow's error codes are gRPC's, and its errors are easier to read and to catch.
            code, _ = error.code().value
            error_type = tf.compat.v1.errors.exception_type_from_error_code(code)
            raise error_type(None, None, error.details()) from error

    def get_executor(self, request: Any) -> Any:
        return self._call(super().get_executor, request)

    def create_value(self, request: Any) -> Any:
        return self._call(super().create_value, request)

    def create_struct(self, request: Any) -> Any:
        return self._call(super().create_struct, request)

    def create_call(self, request: Any) -> Any:
        return self._call(super().create_call, request)

    def create_selection(self, request: Any) -> Any:
        return self._call(super().create_selection, request)

    def compute(self, request: Any) -> Any:
        return self._call(super().compute, request)

    # These two free memory in the worker, often from a finalizer: there is nobody to tell, neither
    # of failures (RpcError) nor of a channel that is closed (ValueError).

    def dispose(self, request: Any) -> Any:
        with contextlib.suppress(grpc.RpcError, ValueError):
            return super().dispose(request)

    def dispose_executor(self, request: Any) -> Any:
        with contextlib.suppress(grpc.RpcError, ValueError):
            return super().dispose_executor(request)


class RemoteContext(tff.framework.SyncExecutionContext):
    """Executes computations in one worker."""

    def __init__(self, channel: grpc.Channel, why_gone: WhyGone) -> None:
        """Initialises it.

        Args:
            channel: The connection to the worker.
            why_gone: Says which errors of calls mean that the worker is not there any more; what it
                returns is raised.
        """
        self._executors: weakref.WeakSet[tff.framework.RemoteExecutor] = weakref.WeakSet()
        stub = Stub(channel, why_gone)

        def new_executor(
            cardinalities: tff.framework.CardinalitiesType,
        ) -> tff.framework.RemoteExecutor:
            cardinalities.setdefault(tff.CLIENTS, 0)
            executor = tff.framework.RemoteExecutor(stub)
            executor.set_cardinalities(cardinalities)
            self._executors.add(executor)
            return executor

        super().__init__(
            tff.framework.ResourceManagingExecutorFactory(new_executor),
            tff.backends.native.desugar_and_transform_to_native,
            transform_args=tff.tensorflow.transform_args,
            transform_result=tff.tensorflow.transform_result,
        )

    def forget_values(self) -> None:
        """Ends what finalizers of values in the worker would still ask it: to free them."""
        while self._executors:
            self._executors.pop().close()
