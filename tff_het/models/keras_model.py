"""From a Keras model and a choice of local variables to a `Model`."""

import functools
from collections.abc import Callable, Collection, Mapping
from typing import Any

import tensorflow as tf

from tff_het import seeding
from tff_het.models import calling, layers, objectives, slots
from tff_het.models.model import (
    EXAMPLE_WEIGHT,
    Batch,
    ClientContext,
    LossOutput,
    Model,
    Outputs,
    PerExample,
    Variables,
    VariableSpec,
)

# Layer names, or a predicate on variable paths such as `dense_1/kernel`.
Local = Collection[str] | Callable[[str], bool]


def from_keras(
    build: Callable[[], tf.keras.Model],
    example_spec: Mapping[str, tf.TensorSpec],
    *,
    local: Local = (),
    loss: PerExample = objectives.cross_entropy,
    metrics: Mapping[str, PerExample] | None = None,
) -> Model:
    """Makes a `Model` of a Keras model.

    The Keras model takes the column `x`, or, with several inputs, the columns
    named as its inputs, and returns logits [b, classes] or a mapping of outputs
    by name. Its regularisers and `add_loss` terms are part of the loss.

    Args:
      build: Builds the (uncompiled) Keras model; called once.
      example_spec: Columns of a client's examples, shapes with a leading None.
      local: Which variables are local: names of layers, or a predicate on
        variable paths. Empty: none.
      loss: What is minimised, per example.
      metrics: What is reported beside the loss; accuracy by default.

    Raises:
      ValueError: If `local` names what does not exist or matches nothing, if the
        model holds Keras's own random layers, or has integer variables.
    """
    # Keras numbers unnamed layers for the whole process; paths, and with them
    # what a predicate sees, must not depend on what was built before.
    tf.keras.backend.reset_uids()
    with slots.slots():
        keras_model = build()
    every_layer = list(keras_model._flatten_layers(include_self=False))  # pylint: disable=protected-access
    _refuse_stateful_random_layers(every_layer)
    for salt, layer in enumerate(every_layer):
        if isinstance(layer, layers.Dropout):
            layer.salt = salt
    slot_variables = list(keras_model.weights)
    trainable = {id(v) for v in keras_model.trainable_weights}
    local_ids = _choose_local(keras_model, local)
    specs = tuple(
        VariableSpec(
            path=_path(v),
            shape=tuple(v.shape),
            dtype=v.dtype,
            trainable=id(v) in trainable,
            local=id(v) in local_ids,
        )
        for v in slot_variables
    )
    for spec in specs:
        if not spec.dtype.is_floating:
            raise ValueError(
                f"Variable {spec.path} is {spec.dtype.name}: only floating point variables can be "
                "averaged between clients."
            )

    def initial_variables(seed: int) -> Variables:
        return model.split(
            [
                _initial_value(v, seeding.integer_seed(seed, seeding.MODEL, index))
                for index, v in enumerate(slot_variables)
            ]
        )

    def forward(
        variables: Variables, batch: Batch, client: ClientContext, seed: Any, training: bool
    ) -> tuple[Outputs, tf.Tensor, Variables]:
        with (
            slots.bound(slot_variables, model.join(variables)) as values,
            calling.call(client, seed),
        ):
            result = keras_model(_inputs(keras_model, batch), training=training)
            regularisation = tf.add_n(keras_model.losses) if keras_model.losses else tf.zeros([])
            updated = model.split([values[id(v)] for v in slot_variables])
        outputs = dict(result) if isinstance(result, Mapping) else {"logits": result}
        return outputs, regularisation, updated

    def predict(variables, batch, client, seed, training) -> Outputs:
        return forward(variables, batch, client, seed, training)[0]

    def loss_fn(variables, batch, client, seed, training) -> LossOutput:
        outputs, regularisation, updated = forward(variables, batch, client, seed, training)
        weight = batch[EXAMPLE_WEIGHT]
        mean = tf.math.divide_no_nan(
            tf.reduce_sum(weight * loss(batch, outputs)), tf.reduce_sum(weight)
        )
        return LossOutput(mean + regularisation, outputs, updated)

    model = Model(
        specs=specs,
        example_spec=dict(example_spec),
        initial_variables=initial_variables,
        predict=predict,
        loss=loss_fn,
        metrics={
            "loss": loss,
            **({"accuracy": objectives.accuracy} if metrics is None else metrics),
        },
    )
    return model


def _path(variable: tf.Variable) -> str:
    return variable.name.removesuffix(":0")


def _choose_local(keras_model: tf.keras.Model, local: Local) -> set[int]:
    """Returns the `id`s of the local variables."""
    if callable(local):
        chosen = {id(v) for v in keras_model.weights if local(_path(v))}
        if not chosen:
            paths = ", ".join(_path(v) for v in keras_model.weights)
            raise ValueError(f"`local` matches no variable of the model, which has: {paths}.")
        return chosen
    if isinstance(local, str):
        raise ValueError(f"`local` is a list of layer names: write [{local!r}].")
    with_weights = {layer.name: layer for layer in keras_model.layers if layer.weights}
    unknown = [name for name in local if name not in with_weights]
    if unknown:
        raise ValueError(
            f"No layer with variables is called {', '.join(map(repr, unknown))}; the model has: "
            f"{', '.join(with_weights)}."
        )
    return {id(v) for name in local for v in with_weights[name].weights}


def _refuse_stateful_random_layers(every_layer: list[tf.keras.layers.Layer]) -> None:
    for layer in every_layer:
        rates = (getattr(layer, name, 0) for name in ("rate", "dropout", "recurrent_dropout"))
        own = isinstance(layer, layers.Dropout)
        if not own and isinstance(layer, _RANDOM_LAYERS) and any(rates):
            raise ValueError(
                f"Layer {layer.name!r} ({type(layer).__name__}) draws from Keras's shared random "
                "generator, so results would depend on what ran before: use "
                "`tff_het.models.layers.Dropout`."
            )


_RANDOM_LAYERS = (
    tf.keras.layers.Dropout,
    tf.keras.layers.GaussianDropout,
    tf.keras.layers.GaussianNoise,
    tf.keras.layers.AlphaDropout,
    tf.keras.layers.LSTM,
    tf.keras.layers.LSTMCell,
    tf.keras.layers.GRU,
    tf.keras.layers.GRUCell,
    tf.keras.layers.SimpleRNN,
    tf.keras.layers.SimpleRNNCell,
)


def _inputs(keras_model: tf.keras.Model, batch: Batch) -> Any:
    names = getattr(keras_model, "input_names", None) or ["x"]
    if len(names) == 1:
        return batch["x"]
    missing = [name for name in names if name not in batch]
    if missing:
        raise ValueError(
            f"The model has inputs {', '.join(names)}, but the examples have no column "
            f"{', '.join(missing)}; they have: {', '.join(batch)}."
        )
    return {name: batch[name] for name in names}


def _initial_value(variable: slots.SlotVariable, seed: int) -> tf.Tensor:
    """Draws a variable's initial value anew; an initialiser's own seed is respected."""
    value_fn = variable.initial_value_fn
    if isinstance(value_fn, functools.partial):
        initializer = value_fn.func
        config = initializer.get_config() if hasattr(initializer, "get_config") else {}
        if config.get("seed", seed) is None:
            seeded = type(initializer).from_config(config | {"seed": seed})
            value_fn = functools.partial(seeded, *value_fn.args, **value_fn.keywords)
    value = value_fn() if callable(value_fn) else value_fn
    return tf.cast(tf.convert_to_tensor(value), variable.dtype)
