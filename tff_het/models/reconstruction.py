"""Between our `Model` and `tff.learning.models.ReconstructionModel`.

Both split a model's variables into global and local ones. TFF's form holds
`tf.Variable`s and has a forward pass of (batch, training); ours is made of pure
functions that also see the client and a seed, and includes its loss.
"""

import collections
from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf
import tensorflow_federated as tff

from tff_het.models import keras_model, objectives
from tff_het.models.model import (
    Batch,
    ClientContext,
    Model,
    Outputs,
    PerExample,
    Variables,
    Weights,
)


def from_reconstruction_model(
    model_fn: Callable[[], tff.learning.models.ReconstructionModel],
    *,
    loss: PerExample = objectives.cross_entropy,
    metrics: Mapping[str, PerExample] | None = None,
) -> Model:
    """Makes a `Model` of a reconstruction model.

    Its predictions become the output `logits` (or outputs by name, if they are a
    mapping), its labels the output `labels`. Examples have the columns of its
    `input_spec`, or `x` and `y` if that is a pair.

    The forward pass is called as a Python function even if it is a `tf.function`,
    which would hold on to the variables' values of its first trace: it has to do
    without AutoGraph. Regularisers are not part of what it returns, hence not of
    the loss.

    Args:
      model_fn: Builds the model, all of whose variables it creates; called once.
      loss: What is minimised, per example.
      metrics: What is reported beside the loss; accuracy by default.

    Raises:
      TypeError: If `model_fn` returns something else.
      ValueError: If variables were created before, are of integers, or the
        model holds Keras's own random layers.
    """
    model = keras_model.build_with_slots(model_fn)
    if not isinstance(model, tff.learning.models.ReconstructionModel):
        raise TypeError(
            "model_fn must return a tff.learning.models.ReconstructionModel, found "
            f"{type(model).__name__}."
        )
    every_layer = keras_model.number_random_layers(
        part for part in vars(model).values() if isinstance(part, tf.keras.layers.Layer)
    )
    forward_pass = getattr(model.forward_pass, "python_function", model.forward_pass)
    example_spec = _columns(model.input_spec)

    def call(batch: Batch, training: bool) -> tuple[Outputs, tf.Tensor]:
        keras_model.restore_classes(every_layer)
        columns = [batch[name] for name in example_spec]
        batch_input = tf.nest.pack_sequence_as(model.input_spec, columns)
        output = forward_pass(batch_input, training=training)
        predictions = output.predictions
        by_name = dict(predictions) if isinstance(predictions, Mapping) else {"logits": predictions}
        labels = {} if output.labels is None else {"labels": output.labels}
        return by_name | labels, tf.zeros([])

    shared = tff.learning.models.ReconstructionModel.get_global_variables(model)
    own = tff.learning.models.ReconstructionModel.get_local_variables(model)
    trainable = [*shared.trainable, *own.trainable]
    local = [*own.trainable, *own.non_trainable]
    return keras_model.functional(
        call,
        [*shared.trainable, *shared.non_trainable, *local],
        example_spec,
        trainable={id(v) for v in trainable},
        local={id(v) for v in local},
        loss=loss,
        metrics=metrics,
    )


def to_reconstruction_model(model: Model, seed: int) -> tff.learning.models.ReconstructionModel:
    """Makes a reconstruction model, for use with TFF's own algorithms.

    To be called inside the `model_fn` that those take. What TFF's contract has no
    place for is lost:

    *   the client: the model is called for a client -1 that never trained;
    *   the seed: layers such as dropout draw the same numbers in every step;
    *   the loss, with its regularisers, and the metrics: TFF takes its own;
    *   changes of non-trainable variables (moving statistics), which a forward
        pass must not make.

    Args:
      model: A model whose examples have the columns `x` and `y`.
      seed: The initial values follow from it.

    Raises:
      ValueError: If the model has an opponent: TFF's algorithms would train all variables on
        one loss.
    """
    if model.opponent_loss is not None:
        raise ValueError(
            "A reconstruction model has no place for an opponent with a loss of its own, as this "
            "model has: make it of a model without one."
        )
    return _FunctionalReconstructionModel(model, seed)


def _columns(input_spec: Any) -> dict[str, tf.TensorSpec]:
    """Returns the columns of examples in the order of `tf.nest.flatten(input_spec)`."""
    spec = input_spec._asdict() if hasattr(input_spec, "_asdict") else input_spec
    flat = tf.nest.flatten(input_spec)
    if isinstance(spec, Mapping) and len(spec) == len(flat):
        # `tf.nest` goes through a mapping by sorted keys, through a named tuple as it stands.
        names = list(spec) if spec is not input_spec else sorted(spec)
        return dict(zip(names, flat, strict=True))
    if len(spec) == len(flat) == 2:
        return dict(zip(("x", "y"), flat, strict=True))
    raise ValueError(
        "A model's input_spec must be a mapping from columns to tensors or a pair (x, y), found "
        f"{input_spec}."
    )


class _FunctionalReconstructionModel(tff.learning.models.ReconstructionModel):
    """See `to_reconstruction_model`."""

    def __init__(self, model: Model, seed: int):
        self._model = model
        initial = model.join(model.initial_variables(seed))
        self._variables: Variables = model.split(
            [
                tf.Variable(value, trainable=spec.trainable, name=spec.path)
                for value, spec in zip(initial, model.specs, strict=True)
            ]
        )

    @property
    def global_trainable_variables(self) -> list[tf.Variable]:
        return self._variables.global_weights.trainable

    @property
    def global_non_trainable_variables(self) -> list[tf.Variable]:
        return self._variables.global_weights.non_trainable

    @property
    def local_trainable_variables(self) -> list[tf.Variable]:
        return self._variables.local_weights.trainable

    @property
    def local_non_trainable_variables(self) -> list[tf.Variable]:
        return self._variables.local_weights.non_trainable

    @property
    def input_spec(self) -> Mapping[str, tf.TensorSpec]:
        return collections.OrderedDict(self._model.example_spec)

    def forward_pass(
        self, batch_input: Batch, training: bool = True
    ) -> tff.learning.models.reconstruction_model.ReconstructionBatchOutput:
        num_examples = tf.shape(batch_input["x"])[0]
        client = ClientContext(tf.constant(-1), num_examples, tf.constant(0))
        values = Variables(
            *(
                Weights(*([v.read_value() for v in side] for side in weights))
                for weights in self._variables
            )
        )
        outputs = self._model.predict(
            values, batch_input, client, tf.zeros([2], tf.int32), training
        )
        return tff.learning.models.reconstruction_model.ReconstructionBatchOutput(
            predictions=outputs["logits"], labels=batch_input["y"], num_examples=num_examples
        )
