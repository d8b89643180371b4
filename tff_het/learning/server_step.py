"""What the server does with the combination of the clients' updates."""

import tensorflow as tf
import tensorflow_federated as tff

from tff_het.learning.types import computation, type_of
from tff_het.models.model import Model, Weights


def apply_update(model: Model, optimizer=None) -> tff.learning.templates.FinalizerProcess:
    """Takes the mean update as the negative gradient of a server optimizer.

    Reddi et al. 2021, Algorithm 1 (FedOpt); SGD with learning rate 1, the
    default, is federated averaging. Non-trainable variables (moving statistics)
    are moved by their mean change, whatever the optimizer.

    Args:
      model: The model whose global variables are updated.
      optimizer: Any of `tff.learning.optimizers`.
    """
    if optimizer is None:
        optimizer = tff.learning.optimizers.build_sgdm(learning_rate=1.0)
    specs = model.tensor_specs.global_weights
    weights_type = type_of(specs)

    @tff.tensorflow.computation
    def initial_state():
        return tf.nest.map_structure(tf.convert_to_tensor, optimizer.initialize(specs.trainable))

    state_type = initial_state.type_signature.result

    def step(state, weights, update):
        descent = [-u for u in update.trainable]
        state, trainable = optimizer.next(state, list(weights.trainable), descent)
        non_trainable = [
            w + u for w, u in zip(weights.non_trainable, update.non_trainable, strict=True)
        ]
        return state, Weights(trainable, non_trainable)

    step_computation = computation(step, state_type, weights_type, weights_type)

    @tff.federated_computation
    def init_fn():
        return tff.federated_eval(initial_state, tff.SERVER)

    @tff.federated_computation(
        tff.FederatedType(state_type, tff.SERVER),
        tff.FederatedType(weights_type, tff.SERVER),
        tff.FederatedType(weights_type, tff.SERVER),
    )
    def next_fn(state, weights, update):
        state, weights = tff.federated_map(step_computation, (state, weights, update))
        return tff.templates.MeasuredProcessOutput(
            state, weights, tff.federated_value((), tff.SERVER)
        )

    return tff.learning.templates.FinalizerProcess(init_fn, next_fn)
