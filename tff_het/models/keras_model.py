"""From a Keras model and a choice of local variables to a `Model`."""

import functools
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

import tensorflow as tf

from tff_het import kept, seeding
from tff_het.backend.names import eager_mode, keras
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

# By name, what weights start from that Keras gives its default: glorot, uniform within
# sqrt(6 / (fan in + fan out)), or fan_in, PyTorch's, uniform within sqrt(1 / fan in).
INITIALIZATIONS: Mapping[str, Callable[[int], keras.initializers.Initializer]] = {
    "glorot": lambda seed: keras.initializers.GlorotUniform(seed),
    "fan_in": lambda seed: keras.initializers.VarianceScaling(1 / 3, "fan_in", "uniform", seed),
}

# Layer names, or a predicate on variable paths such as `dense_1/kernel`.
Local = Collection[str] | Callable[[str], bool]


@kept.by_content(size=64)
def from_keras(
    build: Callable[[], keras.Model],
    example_spec: Mapping[str, tf.TensorSpec],
    *,
    local: Local = (),
    local_statistics: bool = False,
    loss: PerExample = objectives.cross_entropy,
    metrics: Mapping[str, PerExample] = objectives.METRICS,
    training_outputs: Collection[str] = (),
    initialization: str = "glorot",
    opponent: Collection[str] = (),
    opponent_loss: PerExample | None = None,
) -> Model:
    """Makes a `Model` of a Keras model.

    The Keras model takes the columns named as its inputs, or, with one input of
    another name, the column `x`, and returns logits [b, classes] or a mapping of outputs
    by name. Its regularisers and `add_loss` terms are part of the loss. Layers whose
    output depends on which client calls (`calling.current`) say so by an attribute
    `client_is_input`.

    What cannot be refused, since it cannot be seen: `Lambda` layers that draw from
    `tf.random.*`, and layers whose `call` is a `tf.function`, which keep the values of
    the first call.

    Args:
      build: Builds the (uncompiled) Keras model; called once, or not at all for a model that is
        kept from an earlier call.
      example_spec: Columns of a client's examples, shapes with a leading None.
      local: Which variables are local: names of layers, or a predicate on
        variable paths. Empty: none.
      local_statistics: Whether non-trainable variables, which are the moving statistics of batch
        normalisation, are local besides.
      loss: What is minimised, per example.
      metrics: What is reported beside the loss; accuracy by default.
      training_outputs: Names of outputs that the loss needs and `predict` leaves out.
      initialization: One of `INITIALIZATIONS`, for weights to which nothing else is given.
      opponent: Names of the layers that are trained against the rest, see `Model.opponent_loss`.
      opponent_loss: What they minimise, per example.

    Raises:
      ValueError: If `local` or `opponent` names what does not exist or matches nothing, if
        statistics are to be local and there are none, if the model holds Keras's own random
        layers, or variables that are integers or were made elsewhere, if there is no such
        initialization, or if an opponent lacks its loss or its variables.
    """
    # Keras numbers unnamed layers for the whole process; paths, and with them
    # what a predicate sees, must not depend on what was built before.
    keras.backend.reset_uids()
    # Keras calls layers on symbols while it builds: some ask for the client even then.
    with slots.slots(), calling.call(ClientContext(0, 0, 0), [0, 0]):
        keras_model = build()
    every_layer, variables = _all_layers(keras_model), keras_model.weights
    # AutoGraph's rewriting takes longer than tracing; only users' layers may need it.
    as_written = all(map(_needs_no_autograph, every_layer))
    called = tf.autograph.experimental.do_not_convert(keras_model) if as_written else keras_model
    trainable = {id(v) for v in keras_model.trainable_weights}
    chosen = _choose_local(keras_model, local, local_statistics)
    against = _of_layers(keras_model, opponent)
    if bool(against) != (opponent_loss is not None):
        raise ValueError(
            "An opponent has variables and a loss of its own; found "
            f"{len(against)} variables and {'a' if opponent_loss else 'no'} loss."
        )
    if initialization not in INITIALIZATIONS:
        raise ValueError(
            f"initialization must be one of {', '.join(INITIALIZATIONS)}; found {initialization!r}."
        )
    for variable in variables:
        if not variable.dtype.is_floating:
            raise ValueError(
                f"Variable {_path(variable)} is {variable.dtype.name}: only floating point "
                "variables can be averaged between clients."
            )
        if not isinstance(variable, slots.SlotVariable):
            raise ValueError(
                f"Variable {_path(variable)} was there before the model was built: the function "
                "that builds the model has to create all of its layers and variables anew."
            )

    def spec_of(v: tf.Variable) -> VariableSpec:
        kinds = (id(v) in trainable, id(v) in chosen, id(v) in against)
        return VariableSpec(_path(v), tuple(v.shape), v.dtype, *kinds)

    def initial_variables(seed: int) -> Variables:
        seeds = (seeding.integer_seed(seed, seeding.MODEL, i) for i in range(len(variables)))
        pairs = zip(variables, seeds, strict=True)
        return model.split([_initial_value(v, own, initialization) for v, own in pairs])

    def forward(
        values: Variables, batch: Batch, client: ClientContext, seed: Any, training: bool
    ) -> tuple[Outputs, tf.Tensor, Variables]:
        with slots.bound(variables, model.join(values)) as bound, calling.call(client, seed):
            _restore_classes(every_layer)
            result = called(_inputs(keras_model, batch), training=training)
            outputs = dict(result) if isinstance(result, Mapping) else {"logits": result}
            regularisation = tf.add_n(keras_model.losses) if keras_model.losses else tf.zeros([])
            updated = model.split([bound[id(v)] for v in variables])
        return outputs, regularisation, updated

    def predict(*args: Any) -> Outputs:
        outputs = forward(*args)[0]
        return {name: out for name, out in outputs.items() if name not in training_outputs}

    def loss_fn(values, batch, client, seed, training) -> LossOutput:
        outputs, regularisation, updated = forward(values, batch, client, seed, training)
        return LossOutput(_mean(batch, loss(batch, outputs)) + regularisation, outputs, updated)

    def opponent_loss_fn(values, batch, client, seed, training) -> tf.Tensor:
        assert opponent_loss is not None
        outputs, _, _ = forward(values, batch, client, seed, training)
        return _mean(batch, opponent_loss(batch, outputs))

    model = Model(
        specs=tuple(map(spec_of, variables)),
        example_spec=dict(example_spec),
        initial_variables=initial_variables,
        predict=predict,
        loss=loss_fn,
        metrics={"loss": loss, **metrics},
        client_is_input=any(getattr(layer, "client_is_input", False) for layer in every_layer),
        draws_in_training=any(isinstance(layer, layers.Random) for layer in every_layer),
        opponent_loss=None if opponent_loss is None else opponent_loss_fn,
    )
    return model


def _mean(batch: Batch, values: tf.Tensor) -> tf.Tensor:
    """The mean of [b] over the batch's examples with non-zero weight."""
    weight = batch[EXAMPLE_WEIGHT]
    return tf.math.divide_no_nan(tf.reduce_sum(weight * values), tf.reduce_sum(weight))


def _path(variable: tf.Variable) -> str:
    return variable.name.removesuffix(":0")


def _choose_local(keras_model: keras.Model, local: Local, statistics: bool) -> set[int]:
    """Returns the `id`s of the local variables, moving statistics among them if so asked."""
    if statistics and not keras_model.non_trainable_weights:
        raise ValueError(
            "Moving statistics are to be local, but the model has none: they come with batch "
            "normalisation."
        )
    besides = {id(v) for v in keras_model.non_trainable_weights if statistics}
    if callable(local):
        chosen = {id(v) for v in keras_model.weights if local(_path(v))}
        if not chosen:
            paths = ", ".join(_path(v) for v in keras_model.weights)
            raise ValueError(
                f"`local` matches no variable of the model, which has: {paths}. Keep all of them "
                "global with ()."
            )
        return chosen | besides
    if isinstance(local, str):
        raise ValueError(f"`local` is a list of layer names: write [{local!r}].")
    return _of_layers(keras_model, local) | besides


def _of_layers(keras_model: keras.Model, names: Collection[str]) -> set[int]:
    """Returns the `id`s of the variables of these layers."""
    with_weights = {layer.name: layer for layer in keras_model.layers if layer.weights}
    unknown = [name for name in names if name not in with_weights]
    if unknown:
        raise ValueError(
            f"No layer with variables is called {', '.join(map(repr, unknown))}; the model has: "
            f"{', '.join(with_weights)}. (Layers of inner models: give a predicate on paths.)"
        )
    return {id(v) for name in names for v in with_weights[name].weights}


def _restore_classes(every_layer: Iterable[keras.layers.Layer]) -> None:
    """Makes models callable again after others were built in a graph of TensorFlow 1's kind.

    Whenever an object of a Keras class is made, Keras gives that class, and so all objects of it,
    the base of the version in force. TFF's `from_keras_model` builds in such graphs.
    """
    with eager_mode():
        for layer_class in {type(layer) for layer in every_layer}:
            layer_class.__new__(layer_class)  # type: ignore[call-overload]


def _all_layers(keras_model: keras.Model) -> list[keras.layers.Layer]:
    """Returns all layers, the random ones of which are numbered.

    Raises:
      ValueError: If there are Keras's own random layers among them.
    """
    every_layer = list(keras_model._flatten_layers())  # pylint: disable=protected-access
    for salt, layer in enumerate(every_layer):
        if isinstance(layer, layers.Random):
            layer.salt = salt
        elif _draws_from_shared_generator(layer):
            raise ValueError(
                f"Layer {layer.name!r} ({type(layer).__name__}) draws from Keras's shared random "
                "generator, so results would depend on what ran before: use "
                "`tff_het.models.layers.Dropout`, or derive from `layers.Random`."
            )
    return every_layer


def _needs_no_autograph(layer: keras.layers.Layer) -> bool:
    """Whether a layer surely has no Python conditions or loops on tensors."""
    known = type(layer).__module__.startswith(("keras.", "tff_het."))
    return known and not isinstance(layer, keras.layers.Lambda)


def _draws_from_shared_generator(layer: keras.layers.Layer) -> bool:
    # Keras has no public name for what its random layers share.
    if getattr(layer, "_random_generator", None) is None:
        return False
    names = ("rate", "stddev", "dropout", "recurrent_dropout")
    amounts = [getattr(layer, name) for name in names if hasattr(layer, name)]
    return any(amounts) or not amounts


def _inputs(keras_model: keras.Model, batch: Batch) -> Any:
    names = getattr(keras_model, "input_names", None) or ["x"]
    if len(names) == 1:
        return batch[names[0] if names[0] in batch else "x"]
    missing = [name for name in names if name not in batch]
    if missing:
        raise ValueError(
            f"The model has inputs {', '.join(names)}, but the examples have no column "
            f"{', '.join(missing)}; they have: {', '.join(batch)}."
        )
    return {name: batch[name] for name in names}


def _initial_value(variable: slots.SlotVariable, seed: int, initialization: str) -> tf.Tensor:
    """Draws a variable's initial value again; an initialiser's own seed is respected."""
    value_fn = variable.initial_value_fn
    if isinstance(value_fn, functools.partial):
        initializer: Any = value_fn.func
        config = initializer.get_config() if hasattr(initializer, "get_config") else {}
        if config.get("seed", seed) is None:
            if isinstance(initializer, keras.initializers.GlorotUniform):
                seeded = INITIALIZATIONS[initialization](seed)
            else:
                seeded = type(initializer).from_config(config | {"seed": seed})
            value_fn = functools.partial(seeded, *value_fn.args, **value_fn.keywords)
    value = value_fn() if callable(value_fn) else value_fn
    return tf.cast(tf.convert_to_tensor(value), variable.dtype)
