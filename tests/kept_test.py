"""What is kept is found by content, and what cannot be keyed is built anew."""

import collections
import dataclasses
import functools
import types
from typing import Any, NamedTuple

import numpy as np
import pytest
import tensorflow as tf

from tff_het import kept
from tff_het.backend.names import keras, tff
from tff_het.learning import aggregators
from tff_het.learning.augmentation import crop_and_flip
from tff_het.learning.composer import compose
from tff_het.learning.local_training import LocalTraining
from tff_het.learning.works import local_sgd
from tff_het.models import architectures, objectives


class Pair(NamedTuple):
    first: Any
    second: Any


@dataclasses.dataclass(frozen=True)
class Option:
    value: Any


def adding(number):
    return lambda x: x + number


def doubling(x, times=2):
    return times * x


def sgd(**options):
    optimizer = tff.learning.optimizers.build_sgdm(options.pop("rate", 0.1), options.pop("m", None))
    return LocalTraining(optimizer, batch_size=4, epochs=1, **options)


# Each is made twice, and differs from all others.
MAKERS = [
    lambda: None,
    lambda: 1,
    lambda: 1.0,
    lambda: True,
    lambda: "1",
    lambda: 0.0,
    lambda: -0.0,
    lambda: float("nan"),
    lambda: (1, 2),
    lambda: [1, 2],
    lambda: Pair(1, 2),
    lambda: {"a": 1, "b": 2},
    lambda: {"b": 2, "a": 1},
    lambda: collections.OrderedDict(a=1, b=2),
    lambda: np.arange(3),
    lambda: np.arange(3).reshape(3, 1),
    lambda: np.arange(3, dtype=np.int32),
    lambda: np.array([0, 1, 3]),
    lambda: np.float32(1),
    lambda: np.dtype(np.int32),
    lambda: tf.int32,
    lambda: tf.TensorSpec([None, 3], tf.float32),
    lambda: tf.TensorSpec([2, 3], tf.float32),
    lambda: Option(1),
    lambda: Option([1]),
    lambda: adding(1),
    lambda: adding(2),
    lambda: adding(np.ones(2)),
    lambda: doubling,
    lambda: functools.partial(doubling, times=2),
    lambda: functools.partial(doubling, times=3),
    lambda: Option(3).__eq__,
    lambda: Option(4).__eq__,
    lambda: sgd(),
    lambda: sgd(rate=0.2),
    lambda: sgd(m=0.9),
    lambda: sgd(weight_decay=0.1),
    lambda: sgd(learning_rate=adding(1)),
    lambda: sgd(augment=crop_and_flip(2)),
    lambda: sgd(augment=crop_and_flip(3)),
    lambda: tff.learning.optimizers.build_adam(0.1),
    lambda: objectives.class_weighted([1, 2]),
    lambda: objectives.class_weighted([1, 3]),
    lambda: aggregators.compressed(8),
    lambda: aggregators.compressed(4),
    lambda: tff.aggregators.MeanFactory(),
    lambda: tff.aggregators.UnweightedMeanFactory(),
]


def test_equal_contents_and_no_others_have_equal_keys():
    keys = [kept.content(make()) for make in MAKERS]
    assert [kept.content(make()) for make in MAKERS] == keys
    assert len(set(keys)) == len(keys)


def written(text: str, name: str = "__main__"):
    """What a notebook or a user's module called `name` has as `f`."""
    module = types.ModuleType(name)
    exec(text, module.__dict__)
    return module.f


@pytest.mark.parametrize(
    "value",
    [
        object(),
        np.array([object()]),
        tf.constant(1.0),
        keras.layers.Dense(1),
        types.ModuleType("somebodys"),
        written("class F: width = 3\nf = F()"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_has_no_key(value):
    for hidden in (value, [value], adding(value), Option({"a": value})):
        with pytest.raises(kept.UnkeyableError):
            kept.content(hidden)


@pytest.mark.parametrize(
    "text",
    [
        "width = {}\ndef f(): return width",
        "width = {}\ndef f(): return lambda: width",
        "width = {}\ndef g(): return width\ndef f(): return g()",
        "width = {}\nclass F:\n  def call(self): return width\nf = F",
        "width = {}\nclass F:\n  def call(self): return width\ndef f(): return F()",
    ],
)
@pytest.mark.parametrize("name", ["__main__", "plugin"])
def test_globals_that_change_are_seen(text, name):
    f = written(text.format(3), name)
    before = kept.content(f)
    assert kept.content(f) == before
    function = f if isinstance(f, types.FunctionType) else f.call
    function.__globals__["width"] = 4
    assert kept.content(f) != before
    function.__globals__["width"] = object()
    with pytest.raises(kept.UnkeyableError):
        kept.content(f)


def test_what_holds_itself_has_no_key():
    value: list = []
    value.append(value)
    with pytest.raises(kept.UnkeyableError):
        kept.content(value)


def test_the_results_used_last_are_kept():
    calls = []

    @kept.by_content(size=2)
    def build(*args, **kwargs):
        calls.append((args, kwargs))
        return Option(len(calls))

    assert build([1], a=2) is build([1], a=2)
    first, second = build(1), build(2)  # Now [1] is forgotten.
    assert build(1) is first
    build(3)  # And now 2.
    assert build(1) is first and build(2) is not second
    assert len(calls) == 5
    nobody_knows = object()
    assert build(nobody_knows) is not build(nobody_knows)
    # What was kept stands for itself inside of other keys.
    assert kept.content(first) != kept.content(Option(first.value))
    kept.forget()
    assert build(1) is not first


def test_errors_are_not_kept():
    @kept.by_content(size=2)
    def build(known):
        if not known:
            raise ValueError("unknown")
        return known

    for _ in range(2):
        with pytest.raises(ValueError, match="unknown"):
            build([])
    assert build([1]) == [1]


# --- Processes --------------------------------------------------------------------------------


def network(x, num_classes, layers):
    return x, layers.output(num_classes)(x)


def process_of(*, seed=0, training=None, net=network, units=3, penalty=None):
    spec = {"x": (np.dtype(np.float32), (units,)), "y": (np.dtype(np.int32), ())}
    model = architectures.make("small", spec, 2, net).model()
    return compose(model, local_sgd(model, training or sgd(), penalty), seed=seed)


def test_processes_share_what_does_not_depend_on_the_seed():
    first, second = process_of(seed=1), process_of(seed=2)
    assert first.next is second.next and first.client_update is second.client_update
    assert first.model is second.model
    assert first.initialize is not second.initialize
    others = (
        process_of(training=sgd(rate=0.2)),
        process_of(units=4),
        process_of(penalty=lambda download, state: lambda variables: 0.0),
    )
    assert len({id(p.next) for p in (first, *others)}) == 4


def test_what_a_users_network_reads_may_change():
    text = "width = 4\ndef f(x, num_classes, layers):\n"
    text += "  x = layers.dense(width, 'dense_1')(x)\n  return x, layers.output(num_classes)(x)"
    net = written(text)
    first, second = process_of(net=net), process_of(net=net)
    assert first.next is second.next
    net.__globals__["width"] = 5
    third = process_of(net=net)
    assert third.model.num_parameters > first.model.num_parameters
