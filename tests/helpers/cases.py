"""All methods and their options on a small problem, for tests that hold for each of them."""

import collections
import dataclasses
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from tff_het import methods, seeding
from tff_het.backend.names import keras, tff
from tff_het.learning.acquisition import Acquisition
from tff_het.learning.local_training import LocalTraining
from tff_het.learning.process import FederatedProcess
from tff_het.models import adversary, architectures
from tff_het.models.layers import Dropout, Layers

SEED = 1
FEATURES, UNITS, CLASSES = 6, 5, 3
HEAD = [(UNITS, CLASSES), (CLASSES,)]
BODY = [(FEATURES, UNITS), (UNITS,)]
ADVERSARY = [(UNITS, 4), (4,), (4, 2), (2,)]
PROTECTED = ("race", "sex")
ACQUISITION = Acquisition(
    "bald", size=2, per_round=2, pool_size=5, kept_per_class=1, dropout_samples=3
)


@dataclasses.dataclass(frozen=True)
class Case:
    """A method, and what it does that others do not.

    Attributes:
      local: Shapes of the local variables.
      personal: Whether clients' models differ without being adapted; as `local` says, where None.
      adversary: Whether there is one, on the first layer.
      extra: Shapes of what is in an update beside the change of the global variables.
      keeps: Whether clients keep something beside local variables.
      adapts: Whether clients adapt the model before they predict.
      counts: Whether the server counts participants.
      frozen: Shapes of local variables that training leaves as they are.
      normalized: Whether the network has batch normalisation.
      plain: Whether clients take plain SGD alone.
      sends_kept: Whether what a client sends follows from what it keeps, by the paper's design.
    """

    method: str
    local: list[tuple[int, ...]]
    options: dict[str, Any] = dataclasses.field(default_factory=dict)
    label: str = ""
    personal: bool | None = None
    adversary: bool = False
    acquisition: Acquisition | None = None
    extra: list[tuple[int, ...]] = dataclasses.field(default_factory=list)
    keeps: bool = False
    adapts: bool = False
    counts: bool = False
    frozen: list[tuple[int, ...]] = dataclasses.field(default_factory=list)
    sends_kept: bool = False
    plain: bool = False
    normalized: bool = False

    def __str__(self) -> str:
        return self.method + self.label

    @property
    def keeps_something(self) -> bool:
        """Whether there is anything at a client that could leak."""
        return bool(self.local or self.acquisition or self.keeps)

    @property
    def training_metrics(self) -> set[str]:
        """How well a client's own model does on its examples: all that local values may change."""
        names = {"loss", "accuracy"}
        if self.adversary:
            names |= {"prediction_loss", "adversary_loss"}
        if "local_loss" in self.options:
            names |= {"local_loss"}
        return names


_draw = np.random.default_rng(99)
# What the server judges models by.
SELECTION = {
    "x": _draw.normal(size=(501, FEATURES)).astype(np.float32),
    "y": _draw.integers(0, CLASSES, 501).astype(np.int32),
}
JUDGING = {"selection": SELECTION, "ensemble_dropout_samples": 2}

CASES = [
    Case("fed_avg", local=[]),
    Case(
        "fed_avg",
        local=[],
        options={"server_optimizer": tff.learning.optimizers.build_adam(0.01, epsilon=1e-3)},
        label="-server-adam",
    ),
    Case("fed_avg", local=[], label="-adversary", adversary=True),
    Case("fed_avg", local=[], label="-acquisition", acquisition=ACQUISITION),
    Case("fed_prox", local=[], options={"proximal_strength": 0.5}),
    Case("q_ffl", local=[], options={"q": 0.5}),
    Case("hdafl", local=HEAD),
    Case("hdafl", local=BODY, options={"local_layers": ["dense_1"]}, label="-local-features"),
    Case("hdafl", local=HEAD + ADVERSARY, label="-adversary", adversary=True),
    Case("fed_recon", local=HEAD, adapts=True),
    Case(
        "fed_recon",
        local=HEAD + ADVERSARY,
        label="-adversary",
        adversary=True,
        adapts=True,
    ),
    Case("lg_fedavg", local=BODY),
    Case("lg_fedavg", local=BODY + ADVERSARY, label="-adversary", adversary=True),
    Case("lg_fedavg", local=HEAD, options={"local_layers": ["output"]}, label="-local-classifier"),
    Case("lg_fedavg", local=BODY, options={"norm_weights": True}, label="-norms"),
    Case(
        "lg_fedavg",
        local=BODY + HEAD,
        options={"local_loss": "supervised"},
        label="-supervised",
    ),
    Case(
        "lg_fedavg",
        local=[*BODY, (UNITS, FEATURES), (FEATURES,)],
        options={"local_loss": "autoencoder", "local_loss_weight": 0.5},
        label="-autoencoder",
    ),
    Case("cgau", local=[(UNITS,), (UNITS,)]),
    Case(
        "cgau",
        local=[(UNITS,), (UNITS,), (CLASSES,)],
        options={"condition_output": True},
        label="-output",
    ),
    Case(
        "cgau",
        local=[],
        options={"variant": "shared_one_hot", "num_clients": 8},
        label="-shared",
        personal=True,
    ),
    Case(
        "cgau",
        local=[],
        options={"variant": "as_released", "num_clients": 8},
        label="-released",
        personal=True,
    ),
    Case("waffle", local=[(UNITS,)] * 3),
    Case(
        "waffle",
        local=[(7,)] * 3,
        options={
            "factors": {"dense_1": 7},
            "alpha_over_factors": 0.4,
            "temperature": 0.1,
            "evaluation_samples": 2,
            "keep_globals": True,
        },
        label="-options",
        keeps=True,
        adapts=True,
    ),
    Case(
        "waffle",
        local=[(UNITS,)] * 3,
        options={"keep_globals": True},
        label="-acquisition",
        acquisition=ACQUISITION,
        keeps=True,
        adapts=True,
    ),
    Case("ave_fl", local=[]),
    Case("opt_fl", local=[], options=JUDGING, extra=[()]),
    Case("mix_fl", local=[], options=JUDGING, extra=[()]),
    Case("ditto", local=[], keeps=True, adapts=True),
    Case(
        "scaffold",
        local=[],
        options={"num_clients": 8},
        extra=BODY + HEAD,
        keeps=True,
        counts=True,
        plain=True,
    ),
    Case(
        "ifca",
        local=[],
        options={"num_clusters": 3},
        extra=[(3,)],
        personal=True,
        adapts=True,
    ),
    Case("p_fed_me", local=[], keeps=True, adapts=True, plain=True),
    Case("per_fed_avg", local=[], adapts=True),
    Case(
        "per_fed_avg",
        local=[],
        options={"variant": "hessian_free"},
        label="-hessian-free",
        adapts=True,
    ),
    Case("apfl", local=[], keeps=True, adapts=True),
    Case("fed_dyn", local=[], options={"num_clients": 8}, keeps=True, counts=True),
    Case("fed_proto", local=BODY + HEAD, sends_kept=True),
    Case(
        "fed_proto",
        local=BODY + HEAD,
        options={"prototype_weights": "counts", "predict": "prototype"},
        label="-counts-nearest",
        sends_kept=True,
    ),
    Case("fed_per", local=HEAD),
    Case("fed_bn", local=[(UNITS,)] * 4, normalized=True),
    Case("fed_rep", local=HEAD, options={"head_epochs": 2}),
    Case("fed_avg_ft", local=[], adapts=True),
    Case("fed_babu", local=HEAD, frozen=HEAD, adapts=True),
    Case(
        "fed_babu",
        local=HEAD + ADVERSARY,
        label="-adversary",
        adversary=True,
        frozen=HEAD,
        adapts=True,
    ),
    Case("fed_ala", local=[], keeps=True, adapts=True, sends_kept=True),
    Case("local_only", local=BODY + HEAD),
    Case("centralized", local=[]),
]


def network(x: tf.Tensor, num_classes: int, layers: Layers):
    hidden = Dropout(0.2)(layers.dense(UNITS, "dense_1")(x))
    return hidden, layers.output(num_classes)(hidden)


def normalized_network(x: tf.Tensor, num_classes: int, layers: Layers):
    hidden = layers.linear(UNITS, "dense_1")(x)
    hidden = tf.nn.relu(keras.layers.BatchNormalization(name="norm")(hidden))
    return hidden, layers.output(num_classes)(hidden)


def params(cases: Iterable[Case]) -> list:
    """Parameters of tests: a method's first case, and for the slow tests its others."""
    first: dict[str, Case] = {}
    return [
        pytest.param(
            case,
            id=str(case),
            marks=() if first.setdefault(case.method, case) is case else pytest.mark.slow,
        )
        for case in cases
    ]


def build(case: Case, seed: int, rate: float = 0.3, **changes: Any) -> FederatedProcess:
    """The case's process; clients learn at this rate, and `changes` are of the architecture."""
    element = {"x": (np.dtype(np.float32), (FEATURES,)), "y": (np.dtype(np.int32), ())}
    if case.adversary:
        element |= dict.fromkeys(PROTECTED, (np.dtype(np.int32), ()))
    build_network = normalized_network if case.normalized else network
    architecture = architectures.make("small", element, CLASSES, build_network)
    architecture = dataclasses.replace(architecture, **changes)
    if case.adversary:
        architecture = adversary.attach(
            architecture, PROTECTED, (0.5, 2.0), layer="dense_1", units=(4,)
        )
    training = LocalTraining(
        tff.learning.optimizers.build_sgdm(rate, momentum=None if case.plain else 0.9),
        batch_size=4,
        epochs=2,
        acquisition=case.acquisition,
    )
    return methods.build(case.method, architecture, training, seed=seed, **case.options)


def make_client(process, state, client: int, n: int, *, round_num: int = 0, kept=None):
    rng = np.random.default_rng(client)
    return collections.OrderedDict(
        client=np.int32(client),
        seed=seeding.stateless_seed(SEED, seeding.CLIENT_WORK, round_num, client),
        examples=collections.OrderedDict(
            x=rng.normal(size=(n, FEATURES)).astype(np.float32),
            y=rng.integers(0, CLASSES, n).astype(np.int32),
            **{
                name: rng.integers(0, 2, n).astype(np.int32)
                for name in PROTECTED
                if name in process.model.example_spec
            },
        ),
        state=kept if kept is not None else process.init_state(client, SEED, state),
    )


def make_clients(process, state, sizes=((4, 9), (0, 5), (7, 3)), **kwargs):
    return [make_client(process, state, client, n, **kwargs) for client, n in sizes]


def assert_same_bits(found, wanted) -> None:
    tf.nest.assert_same_structure(found, wanted, check_types=False)
    for a, b in zip(tf.nest.flatten(found), tf.nest.flatten(wanted), strict=True):
        a, b = np.asarray(a), np.asarray(b)
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)


def by_client(results) -> dict[int, Any]:
    return {int(result["client"]): result for result in results}


def shapes(value_type: tff.Type) -> list[tuple[int, ...]]:
    """Shapes of all tensors of a type."""
    if isinstance(value_type, tff.TensorType):
        return [tuple(value_type.shape)]
    return [shape for element in value_type for shape in shapes(element)]
