"""Networks for questions about images: against Keras's LSTM, and what padding must not change."""

import numpy as np
import pytest
import tensorflow as tf

from tff_het.backend.names import keras
from tff_het.models import architectures
from tff_het.models.model import ClientContext
from tff_het.models.vqa import LSTM

FEATURES, WORDS, VOCABULARY, CLASSES = 20, 6, 11, 5
ENCODER = ["word_embedding", "lstm_1", "lstm_2"]
CONTEXT, SEED = ClientContext(0, 3, 0), np.zeros(2, np.int32)


def spec(words=WORDS, features=(FEATURES,), dtype=np.float32):
    return {
        "x": (np.dtype(dtype), features),
        "question": (np.dtype(np.int32), (words,)),
        "y": (np.dtype(np.int32), ()),
    }


def make(name="vqa_lstm", words=WORDS):
    return architectures.make(name, spec(words), CLASSES, vocabulary_size=VOCABULARY)


def batch(words=WORDS, n=4, seed=0):
    """Questions of 1 to `words` words, padded."""
    rng = np.random.default_rng(seed)
    question = rng.integers(1, VOCABULARY, (n, words)).astype(np.int32)
    lengths = np.resize([words, 1, 3, 2], n)
    question[np.arange(words) >= lengths[:, None]] = 0
    return {"x": rng.normal(size=(n, FEATURES)).astype(np.float32), "question": question}


def values(model, seed=3):
    """Weights of which none is 0, as biases are in the beginning."""
    rng = np.random.default_rng(seed)
    return model.split([rng.normal(0, 0.5, s.shape).astype(np.float32) for s in model.specs])


def logits(model, variables, examples):
    return model.predict(variables, examples, CONTEXT, SEED, False)["logits"].numpy()


def test_lstm_is_kerass_in_all_states_and_gradients():
    ours, theirs = LSTM(7), keras.layers.LSTM(7, return_sequences=True, return_state=True)
    x = tf.constant(np.random.default_rng(0).normal(size=(3, 5, 4)), tf.float32)
    is_word = tf.constant([[True] * 5] * 3)
    ours(x, is_word), theirs(x)
    rng = np.random.default_rng(1)
    weights = [rng.normal(size=v.shape) for v in theirs.get_weights()]
    ours.set_weights(weights), theirs.set_weights(weights)
    grads = []
    for layer in (ours, theirs):
        with tf.GradientTape() as tape:
            tape.watch(x)
            out = layer(x, is_word) if layer is ours else layer(x)
            hidden, cell = (out[..., :7], out[:, -1, 7:]) if layer is ours else (out[0], out[2])
            loss = tf.reduce_sum(tf.sin(hidden)) + tf.reduce_sum(tf.cos(cell))
        found = tape.gradient(loss, [x, *layer.trainable_variables])
        grads.append([hidden, cell, *found])
    for one, other in zip(*grads, strict=True):
        np.testing.assert_allclose(one, other, atol=2e-5)


def test_lstm_starts_as_kerass():
    ours, theirs = LSTM(3), keras.layers.LSTM(3)
    ours(tf.zeros([1, 2, 2]), tf.ones([1, 2], tf.bool)), theirs(tf.zeros([1, 2, 2]))
    np.testing.assert_array_equal(ours.get_weights()[2], theirs.get_weights()[2])
    recurrent = ours.get_weights()[1]
    np.testing.assert_allclose(recurrent @ recurrent.T, np.eye(3), atol=1e-5)


def test_behind_the_last_word_there_is_nothing_for_a_local_loss_to_read():
    x = np.random.default_rng(0).normal(size=(2, 4, 3)).astype(np.float32)
    is_word = np.array([[True, True, False, False], [True] * 4])
    layer = LSTM(5)
    cut, whole = layer(x, is_word).numpy(), layer(x, np.ones_like(is_word)).numpy()
    np.testing.assert_array_equal(cut[is_word], whole[is_word])
    assert not cut[~is_word].any() and whole[~is_word].any()


def keras_reference(model, variables, examples):
    """The network of Keras's layers, whose LSTM is told by a mask where questions end."""
    by_path = {s.path: v for s, v in zip(model.specs, model.join(variables), strict=True)}

    def weights(name):
        return [v for path, v in by_path.items() if path.split("/")[0] == name]

    question = examples["question"]
    sequence, mask = tf.gather(weights("word_embedding")[0], question), question != 0
    states = []
    for name in ("lstm_1", "lstm_2"):
        layer = keras.layers.LSTM(64, return_sequences=True, return_state=True)
        layer.build(sequence.shape)
        layer.set_weights(weights(name))
        sequence, hidden, cell = layer(sequence, mask=mask)
        states += [hidden, cell]

    def dense(x, name):
        kernel, bias = weights(name)
        return x @ kernel + bias

    fused = tf.nn.relu(dense(tf.concat(states, 1), "question_dense"))
    fused *= tf.nn.relu(dense(examples["x"], "image_dense"))
    return dense(tf.nn.relu(dense(fused, "fused_dense")), "output")


def test_network_is_that_of_kerass_layers_with_a_mask():
    model, examples = make().model(local=ENCODER), batch()
    variables = values(model)
    expected = keras_reference(model, variables, examples)
    np.testing.assert_allclose(logits(model, variables, examples), expected, rtol=1e-3, atol=1e-3)


def test_padding_changes_nothing():
    short, long = make(words=WORDS).model(), make(words=WORDS + 5).model()
    variables, examples = values(short), batch()
    padded = {**examples, "question": np.pad(examples["question"], ((0, 0), (0, 5)))}
    found = logits(long, variables, padded)
    np.testing.assert_allclose(found, logits(short, variables, examples), rtol=1e-4, atol=1e-4)
    # Nor does the word that stands for it: its embedding is read, its effect is not.
    others = short.join(variables)
    index = next(i for i, s in enumerate(short.specs) if s.path.startswith("word_embedding"))
    others[index] = others[index].copy()
    others[index][0] += 100
    other = logits(short, short.split(others), examples)
    np.testing.assert_array_equal(other, logits(short, variables, examples))


@pytest.mark.parametrize(
    ("name", "reads"),
    [
        ("vqa_lstm", ("x", "question")),
        ("vqa_question_lstm", ("question",)),
        ("vqa_image", ("x",)),
        ("mlp", ("x",)),
    ],
)
def test_networks_read_the_columns_they_name_and_no_others(name, reads):
    assert architectures.inputs(name) == reads
    columns = {key: value for key, value in spec().items() if key in (*reads, "y")}
    model = architectures.make(name, columns, CLASSES, vocabulary_size=VOCABULARY).model()
    assert set(model.example_spec) == {*reads, "y"}
    variables, examples, other = values(model), batch(), batch(seed=1)
    first = logits(model, variables, {key: examples[key] for key in reads})
    for column in reads:
        changed = {key: (other if key == column else examples)[key] for key in reads}
        assert np.abs(logits(model, variables, changed) - first).max() > 1e-3, column


def test_number_of_parameters():
    model = architectures.make("vqa_lstm", spec(9, (1280,)), 13, vocabulary_size=28).model(ENCODER)
    local = 28 * 32 + (32 + 64 + 1) * 4 * 64 + (64 + 64 + 1) * 4 * 64
    shared = (1280 + 1) * 64 + (4 * 64 + 1) * 64 + (64 + 1) * 64 + (64 + 1) * 13
    assert (model.num_parameters, model.num_global_parameters) == (local + shared, shared)
    # Antol et al.: two layers of 512 give 2,048 numbers; 1,024 in both channels; 1,000.
    wide = architectures.make(
        "vqa_lstm_wide", spec(14, (4096,)), 1000, vocabulary_size=10_000
    ).model(ENCODER)
    local = 10_000 * 300 + (300 + 512 + 1) * 2048 + (512 + 512 + 1) * 2048
    shared = 4097 * 1024 + 2049 * 1024 + 1025 * 1000 + 1001 * 1000
    assert (wide.num_parameters, wide.num_global_parameters) == (local + shared, shared)


def test_pixels_will_do_for_an_image():
    columns = spec(features=(4, 4, 3), dtype=np.uint8)
    model = architectures.make("vqa_lstm", columns, CLASSES, vocabulary_size=VOCABULARY).model()
    bright, dark = np.full((1, 4, 4, 3), 255, np.uint8), np.full((1, 4, 4, 3), 51, np.uint8)
    scaled = architectures.make(
        "vqa_lstm", spec(features=(4, 4, 3)), CLASSES, vocabulary_size=VOCABULARY
    ).model()
    variables, question = values(model), batch(n=1)["question"]
    for x in (bright, dark):
        found = logits(model, variables, {"x": x, "question": question})
        same = {"x": (x / 255).astype(np.float32), "question": question}
        np.testing.assert_allclose(found, logits(scaled, variables, same), rtol=1e-4, atol=1e-5)


def test_what_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="'vqa_lstm' reads questions: give it their vocabulary"):
        architectures.make("vqa_lstm", spec(), CLASSES)
    images = {key: value for key, value in spec().items() if key != "question"}
    with pytest.raises(ValueError, match=r"reads the columns x, question; .* have no question"):
        architectures.make("vqa_lstm", images, CLASSES, vocabulary_size=VOCABULARY)
    with pytest.raises(ValueError, match="'vqa_question_lstm' does not read x, so"):
        architectures.make(
            "vqa_question_lstm",
            spec(),
            CLASSES,
            vocabulary_size=VOCABULARY,
            statistics=(np.zeros(FEATURES), np.ones(FEATURES)),
        )
