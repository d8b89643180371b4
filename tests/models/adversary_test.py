"""An adversary's alternating steps against a Keras transcription with two tapes."""

import numpy as np
import pytest
import tensorflow as tf

from tff_het.backend.names import keras, tff
from tff_het.learning.local_training import LocalTraining
from tff_het.learning.steps import fit, is_any, is_local
from tff_het.models import adversary, architectures
from tff_het.models.model import EXAMPLE_WEIGHT, ClientContext

optimizers = tff.learning.optimizers

FEATURES, UNITS, CLASSES = 6, 5, 3
WEIGHTS = (0.7, 2.0)
ELEMENT = {
    "x": (np.dtype(np.float32), (FEATURES,)),
    "y": (np.dtype(np.int32), ()),
    "race": (np.dtype(np.int32), ()),
    "sex": (np.dtype(np.bool_), ()),
}
SEED = tf.constant([3, 4])


def network(x, num_classes, layers):
    x = keras.layers.Dense(UNITS, "tanh", name="encoder")(x)
    hidden = keras.layers.Dense(4, "tanh", name="dense_1")(x)
    return hidden, layers.output(num_classes)(hidden)


def plain() -> architectures.Architecture:
    return architectures.make("small", ELEMENT, CLASSES, network)


def attached(weights=WEIGHTS, **options) -> architectures.Architecture:
    options = {"layer": "encoder", "units": (7, 4)} | options
    return adversary.attach(plain(), ("race", "sex"), weights, **options)


def make_examples(n: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(n)
    return {
        "x": rng.normal(size=(n, FEATURES)).astype(np.float32),
        "y": rng.integers(0, CLASSES, n).astype(np.int32),
        "race": rng.integers(0, 2, n).astype(np.int32),
        "sex": rng.integers(0, 2, n).astype(bool),
    }


def run(model, training, variables, examples, trains=is_any):
    n = len(examples["y"])
    context = ClientContext(tf.constant(2), tf.constant(n), tf.constant(0))
    traced = tf.function(
        lambda: fit(
            model, training, variables, examples, context, SEED, tf.constant(0), trains=trains
        )
    )
    return traced()


class Twin:
    """Eq. 21 to 25 of Liang et al. (2019), written out: three Keras models and two tapes."""

    def __init__(self, model, variables):
        values = {
            s.path: v.numpy() for s, v in zip(model.specs, model.join(variables), strict=True)
        }

        def stack(*widths_and_names, inputs):
            layers = [keras.Input([inputs])]
            for width, name, activation in widths_and_names:
                layers.append(keras.layers.Dense(width, activation, name=name))
            found = keras.Sequential(layers)
            found.set_weights([values[w.name.removesuffix(":0")] for w in found.weights])
            return found

        self.encoder = stack((UNITS, "encoder", "tanh"), inputs=FEATURES)
        self.head = stack((4, "dense_1", "tanh"), (CLASSES, "output", None), inputs=UNITS)
        self.adversary = stack(
            (7, "adversary_1", "relu"),
            (4, "adversary_2", "relu"),
            (2, "adversary_output", None),
            inputs=UNITS,
        )
        self.velocity = {}

    def cross_entropies(self, representation, batch) -> tf.Tensor:
        """Mean over the batch for each attribute, [2]."""
        truth = np.stack([batch["race"], batch["sex"]], axis=1).astype(np.float32)
        p = tf.sigmoid(self.adversary(representation))
        return -tf.reduce_mean(truth * tf.math.log(p) + (1 - truth) * tf.math.log(1 - p), axis=0)

    def adversary_step(self, batch, change) -> float:
        representation = self.encoder(batch["x"])
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(self.cross_entropies(representation, batch))
        self._step(tape, loss, self.adversary.trainable_weights, change)

    def step(self, batch, weights, change):
        """Returns the losses of the predictions and of the adversary."""
        with tf.GradientTape() as tape:
            representation = self.encoder(batch["x"])
            logits = self.head(representation)
            own = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(batch["y"], logits))
            adversarys = self.cross_entropies(representation, batch)
            loss = own - weights[0] * adversarys[0] - weights[1] * adversarys[1]
        moved = self.encoder.trainable_weights + self.head.trainable_weights
        self._step(tape, loss, moved, change)
        return float(own), float(tf.reduce_mean(adversarys))

    def _step(self, tape, loss, variables, change) -> None:
        gradients = [g.numpy() for g in tape.gradient(loss, variables)]
        gradients = change(gradients, [v.numpy() for v in variables])
        for v, g in zip(variables, gradients, strict=True):
            self.velocity[v.name] = self.momentum * self.velocity.get(v.name, 0.0) + g
            v.assign_sub(0.1 * self.velocity[v.name])

    momentum = 0.0

    def values(self) -> dict[str, np.ndarray]:
        parts = (self.encoder, self.head, self.adversary)
        return {w.name.removesuffix(":0"): w.numpy() for part in parts for w in part.weights}


def same(gradients, values):
    del values
    return gradients


def decayed_and_clipped(gradients, values):
    gradients = [g + 0.3 * w for g, w in zip(gradients, values, strict=True)]
    norm = np.sqrt(sum((g.astype(np.float64) ** 2).sum() for g in gradients))
    return [g * min(1.0, 0.2 / norm) for g in gradients]


CLIPPED = {"weight_decay": 0.3, "clip_norm": 0.2}


@pytest.mark.parametrize(
    ("local", "momentum", "every", "settings", "change"),
    [
        pytest.param((), 0.0, 1, CLIPPED, decayed_and_clipped, id="decay and clipping-global"),
        pytest.param(("encoder",), 0.5, 2, {}, same, id="two steps-local"),
        *(
            pytest.param(*values, id=name, marks=pytest.mark.slow)
            for name, *values in (
                ("plain-local", ("encoder",), 0.0, 1, {}, same),
                ("decay and clipping-local", ("encoder",), 0.0, 1, CLIPPED, decayed_and_clipped),
                ("two steps-global", (), 0.5, 2, {}, same),
                ("three steps-global", (), 0.0, 3, {}, same),
            )
        ),
    ],
)
def test_alternating_steps(local, momentum, every, settings, change):
    """Nine steps of a client, the last batch of a pass short: weights and reported losses."""
    model = attached().model(local=local)
    start, examples = model.initial_variables(1), make_examples(10)
    training = LocalTraining(
        optimizers.build_sgdm(0.1, momentum or None),
        batch_size=4,
        epochs=3,
        shuffle=False,
        opponent_steps=every,
        **settings,
    )
    after, metrics = run(model, training, start, examples)

    twin, losses = Twin(model, start), []
    twin.momentum = momentum
    passes = [slice(at, at + 4) for at in range(0, 10, 4)] * 3
    for number, rows in enumerate(passes, start=1):
        batch = {name: column[rows] for name, column in examples.items()}
        twin.adversary_step(batch, change)
        before = {k: v.copy() for k, v in twin.values().items()}
        velocity = dict(twin.velocity)
        losses.append((*twin.step(batch, WEIGHTS, change), len(batch["y"])))
        if number % every:  # Not its turn: as if the step had not been made.
            twin.velocity = velocity
            for part in (twin.encoder, twin.head):
                part.set_weights([before[w.name.removesuffix(":0")] for w in part.weights])
    expected = twin.values()
    for spec, value in zip(model.specs, model.join(after), strict=True):
        np.testing.assert_allclose(value, expected[spec.path], atol=1e-5, err_msg=spec.path)
        assert spec.local == bool(local and spec.path.startswith(("encoder", "adversary")))
    own, adversarys, sizes = map(np.array, zip(*losses, strict=True))
    assert metrics["prediction_loss"].count == 30
    np.testing.assert_allclose(metrics["prediction_loss"].total, own @ sizes, rtol=1e-4)
    np.testing.assert_allclose(metrics["adversary_loss"].total, adversarys @ sizes, rtol=1e-4)


def loss_at(model, flat, batch, side: str) -> float:
    context = (ClientContext(0, 8, 0), [0, 0], True)
    values = model.split(flat)
    if side == "opponent":
        return float(model.opponent_loss(values, batch, *context))
    return float(model.loss(values, batch, *context).loss)


def test_each_side_descends_its_own_loss():
    """The first step of each against finite differences of its loss, which differ in sign."""
    model = attached().model()
    examples = make_examples(8)
    start = model.initial_variables(1)
    training = LocalTraining(optimizers.build_sgdm(0.1), batch_size=8, steps=1, shuffle=False)
    after = model.join(run(model, training, start, examples)[0])
    batch = examples | {EXAMPLE_WEIGHT: np.ones(8, np.float32)}
    before = [np.asarray(v, np.float64) for v in model.join(start)]
    # The network's step is taken against the adversary after its step.
    moved = [
        np.asarray(new, np.float64) if spec.opponent else old
        for spec, old, new in zip(model.specs, before, after, strict=True)
    ]
    rng = np.random.default_rng(0)
    for index, spec in enumerate(model.specs):
        side, at = ("opponent", before) if spec.opponent else ("network", moved)
        direction = rng.normal(size=spec.shape)
        shifted = []
        for sign in (1, -1):
            values = [v.astype(np.float32) for v in at]
            values[index] = (at[index] + sign * 1e-3 * direction).astype(np.float32)
            shifted.append(loss_at(model, values, batch, side))
        slope = (shifted[0] - shifted[1]) / 2e-3
        step = np.sum((np.asarray(after[index]) - before[index]) * direction)
        np.testing.assert_allclose(step, -0.1 * slope, atol=3e-4, err_msg=spec.path)


@pytest.mark.slow
def test_weights_change_the_encoders_step_alone():
    examples = make_examples(4)
    training = LocalTraining(optimizers.build_sgdm(0.1), batch_size=4, steps=1, shuffle=False)
    results = []
    for weights in ((0.0, 0.0), (30.0, 30.0)):
        model = attached(weights).model()
        results.append(model.join(run(model, training, model.initial_variables(1), examples)[0]))
    for spec, none, strong in zip(model.specs, *results, strict=True):
        assert np.array_equal(none, strong) != spec.path.startswith("encoder"), spec.path


@pytest.mark.slow
def test_without_weights_the_network_trains_as_if_alone():
    beside = adversary.attach(plain(), ("sex",), (0.0,), layer="encoder", dropout=0.5)
    examples = make_examples(9)
    training = LocalTraining(optimizers.build_sgdm(0.1), batch_size=4, epochs=2)
    results = {}
    for name, architecture in (("alone", plain()), ("beside", beside)):
        model = architecture.model()
        # The same start for variables of the same path, in whichever order.
        start = [
            np.random.default_rng(len(s.path)).normal(size=s.shape).astype(np.float32)
            for s in model.specs
        ]
        after, _ = run(model, training, model.split(list(map(tf.constant, start))), examples)
        results[name] = dict(zip((s.path for s in model.specs), model.join(after), strict=True))
    for path, value in results["alone"].items():
        np.testing.assert_allclose(results["beside"][path], value, atol=1e-6, err_msg=path)


def test_outputs_and_defaults():
    model = adversary.attach(plain(), ["sex"], [1.0]).model()
    shapes = {s.path: s.shape for s in model.specs if s.opponent}
    assert shapes["adversary_1/kernel"] == (4, 32)  # On the last hidden layer.
    assert shapes["adversary_2/kernel"] == shapes["adversary_3/kernel"] == (32, 32)
    assert shapes["adversary_output/kernel"] == (32, 1)
    outputs = model.predict(
        model.initial_variables(0), make_examples(3), ClientContext(0, 3, 0), [0, 0], False
    )
    assert outputs["adversary"].shape == (3, 1)
    np.testing.assert_array_equal(outputs["representation"], outputs["hidden"])


def test_representation_is_of_the_layer_without_activation():
    """The network for Adult: 93 inputs, of whose parameters those up to there are local."""
    element = ELEMENT | {"x": (np.dtype(np.float32), (93,))}
    architecture = architectures.make("mlp_fair", element, 2)
    fair = adversary.attach(architecture, ("race", "sex"), (1, 1), layer="representation")
    model = fair.model(local=("dense_1", "dense_2", "representation"))
    network_only = architecture.model()
    assert network_only.num_parameters == 93 * 32 + 32 + 4 * (32 * 32 + 32) + 2 * 32 + 2
    assert model.num_parameters - network_only.num_parameters == 3 * (32 * 32 + 32) + 2 * 32 + 2
    assert model.num_global_parameters == 2 * (32 * 32 + 32) + 2 * 32 + 2
    x = np.random.default_rng(0).normal(size=(50, 93)).astype(np.float32)
    outputs = model.predict(
        model.initial_variables(0), {"x": x}, ClientContext(0, 50, 0), [0, 0], False
    )
    assert (outputs["representation"].numpy() < 0).any()


@pytest.mark.slow
def test_fixed_global_variables_with_an_adversary():
    """A local adversary goes on learning; a global one stays as it is, like all that is global."""
    examples = make_examples(9)
    training = LocalTraining(optimizers.build_sgdm(0.1), batch_size=4, epochs=1)
    for local in (("encoder",), lambda path: path.startswith("encoder")):
        model = attached().model(local=local)
        start = model.initial_variables(1)
        after, _ = run(model, training, start, examples, trains=is_local)
        for spec, old, new in zip(model.specs, model.join(start), model.join(after), strict=True):
            assert np.array_equal(old, new) != spec.path.startswith(("encoder", "adversary"))
    everything_global = attached().model()
    start = everything_global.initial_variables(1)
    after, _ = run(everything_global, training, start, examples, trains=is_local)
    tf.nest.map_structure(np.testing.assert_array_equal, after, start)


@pytest.mark.parametrize(
    ("attributes", "weights", "options", "message"),
    [
        ((), (), {}, r"\(race, sex\); found none"),
        (("age",), (1,), {}, r"columns beside x and y \(race, sex\); found age"),
        (("y",), (1,), {}, "found y"),
        (("sex", "sex"), (1, 1), {}, "different ones"),
        (("race", "sex"), (1,), {}, r"attribute \(race, sex\); found 1"),
        (("sex",), (-1,), {}, "found -1"),
        (("sex",), (float("nan"),), {}, "found nan"),
        (("sex",), (1,), {"layer": "middle"}, "called 'middle'; the model has: encoder, dense_1"),
        (("sex",), (1,), {"layer": "output"}, "No hidden layer is called 'output'"),
    ],
)
def test_refusals(attributes, weights, options, message):
    with pytest.raises(ValueError, match=message):
        adversary.attach(plain(), attributes, weights, **options)


def test_one_adversary_is_enough():
    with pytest.raises(ValueError, match="has an adversary already"):
        adversary.attach(attached(), ("sex",), (1,))
