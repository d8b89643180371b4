"""Attacks on clients of one method: membership inference and model inversion.

Two federations train alike, with examples assigned at random from one data set: the victims, and
the attacker's own clients, the shadows. Both are observed in their last round. The attacker fits
local variables on examples that neither holds.
"""

import dataclasses
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from experiments.run import data as data_sets
from experiments.run import observing
from experiments.run.observing import Observed
from tff_het import methods, seeding
from tff_het.attacks import attacker, inversion, membership, threshold
from tff_het.attacks.attacker import Attacker, Examples
from tff_het.attacks.membership import Outputs, Target
from tff_het.backend.names import tff
from tff_het.clients import Client, Population
from tff_het.datasets import Dataset
from tff_het.learning.client_work import LocalTraining
from tff_het.learning.process import FederatedProcess, ServerState
from tff_het.models import architectures
from tff_het.simulation import cohorts, loop

PICTURES = "pictures.npz"
# An observer of one client's update, and one of what the server sends to the next clients.
UPDATE, BROADCAST = "update", "broadcast"


@dataclasses.dataclass(frozen=True)
class Course:
    """The attacked model.

    Attributes:
      dataset: Its name.
      model: The network's name.
      method: The method's name.
      options: Of the method.
      num_clients: Of each of the two federations; all train in every round.
      num_examples: That a client trains on, and as many that it does not; also how many the
        attacker fits local variables on.
      rounds: Of which the last one is observed.
      local_epochs: Of a client in a round, as all that follow.
      batch_size: Examples a step.
      learning_rate: Of SGD.
      momentum: Of SGD; 0 for none.
    """

    dataset: str
    model: str
    method: str
    options: Mapping[str, Any]
    num_clients: int
    num_examples: int
    rounds: int
    local_epochs: int
    batch_size: int
    learning_rate: float
    momentum: float = 0.0

    def __post_init__(self):
        if self.rounds < 2:
            raise ValueError(
                f"At least two rounds are needed, of which the last is observed; found "
                f"{self.rounds}."
            )

    @property
    def training(self) -> LocalTraining:
        """Settings of the clients' SGD, with which the attacker fits local variables too."""
        optimizer = tff.learning.optimizers.build_sgdm(self.learning_rate, self.momentum or None)
        return LocalTraining(optimizer, batch_size=self.batch_size, epochs=self.local_epochs)


class Dealt(NamedTuple):
    """Who holds which examples; those that a client does not train on are its test examples."""

    victims: Population
    shadows: Population
    own: Examples


def infer_membership(
    *, seed: int, folder: Path, data_dir: str | None, **course: Any
) -> dict[str, float]:
    """Asks who was a member, of each victim in turn, with each choice of the local variables.

    Args:
      seed: Of all.
      folder: Not used.
      data_dir: The folder of data sets.
      **course: As `Course`.

    Returns:
      Means over victims: `accuracy`, `f1`, `auc` and `true_positives` by what was observed and
      where local variables come from, such as `update_fitted_accuracy`; the accuracies of the
      victims' own models on their members and on others.
    """
    del folder
    chosen = Course(**course)
    data = data_sets.load(chosen.dataset, data_dir)
    dealt = deal(data.train, chosen, seed)
    process = _process(data, dealt.victims, chosen, seed)
    shadows = _observe(process, dealt.shadows, chosen, seed)
    victims = _observe(process, dealt.victims, chosen, seed)
    attackers = _attackers(process, shadows.state, dealt.own, chosen, seed)
    own_models = attackers.get(attacker.PRIVATE, attackers[attacker.FITTED])
    found = _accuracies(_ask(own_models, victims, UPDATE))
    for local, attacking in attackers.items():
        for what in (UPDATE, BROADCAST) if local == attacker.FITTED else (UPDATE,):
            scores = _scores(_ask(attacking, shadows, what), _ask(attacking, victims, what), seed)
            found |= {f"{what}_{local}_{name}": value for name, value in scores.items()}
    return found


def invert(
    *, seed: int, folder: Path, data_dir: str | None, search: Mapping[str, Any], **course: Any
) -> dict[str, float]:
    """Looks for the inputs that the victims' observed models are most sure of, class by class.

    Args:
      seed: Of all.
      folder: Receives the pictures of the first victim.
      data_dir: The folder of data sets.
      search: As `inversion.Settings`.
      **course: As `Course`.

    Returns:
      Means over victims and their classes, by where local variables come from: `correlation` and,
      of images, `ssim` with the mean of the victim's own members of the class; `recognised`, the
      share of reconstructions that are most like the mean of the right class.
    """
    chosen = Course(**course)
    data = data_sets.load(chosen.dataset, data_dir)
    dealt = deal(_between_0_and_1(data.train), chosen, seed)
    process = _process(data, dealt.victims, chosen, seed)
    search_for = inversion.Inversion(process, inversion.Settings(**search))
    victims = _observe(process, dealt.victims, chosen, seed)
    found: dict[str, float] = {}
    pictures: dict[str, np.ndarray] = {}
    attackers = _attackers(process, victims.state, dealt.own, chosen, seed)
    for local, attacking in attackers.items():
        results = []
        for target in _targets(victims, UPDATE, local):
            means = inversion.class_means(target.members)
            model = attacking.reconstruct(target.seen)
            inputs = search_for.invert(model, list(means), seed=seed)
            results.append(_likenesses(inputs, means))
            pictures.setdefault(local, inputs)
            pictures.setdefault("means", np.stack(list(means.values())))
            pictures.setdefault("classes", np.array(data.class_names)[list(means)])
        found |= {f"{local}_{name}": value for name, value in _means(results).items()}
    np.savez_compressed(folder / PICTURES, **pictures)
    return found


def deal(examples: Examples, course: Course, seed: int) -> Dealt:
    """Assigns examples at random: to each client's train and test, and to the attacker.

    Raises:
      ValueError: If there are too few.
    """
    n, groups = course.num_examples, 4 * course.num_clients + 1
    if len(examples["y"]) < n * groups:
        raise ValueError(
            f"{2 * course.num_clients} clients with {n} examples to train on and as many others, "
            f"and {n} for the attacker, come to {n * groups}; the data set has "
            f"{len(examples['y'])}."
        )
    order = seeding.generator(seed, seeding.ATTACK).permutation(len(examples["y"]))
    rows = order[: n * groups].reshape(groups, n)
    parts = [{name: examples[name][part] for name in ("x", "y")} for part in rows]
    nothing = {name: column[:0] for name, column in parts[0].items()}

    def population() -> Population:
        return Population(
            Client(str(k), train=parts.pop(), validation=nothing, test=parts.pop())
            for k in range(course.num_clients)
        )

    return Dealt(population(), population(), parts.pop())


def _process(data: Dataset, population: Population, course: Course, seed: int) -> FederatedProcess:
    architecture = architectures.make(course.model, population.element_spec, data.num_classes)
    return methods.build(course.method, architecture, course.training, seed=seed, **course.options)


def _observe(
    process: FederatedProcess, population: Population, course: Course, seed: int
) -> Observed:
    """Trains a federation, and observes its last round, the private part included."""
    settings = loop.Settings(rounds=course.rounds, seed=seed)
    everyone = cohorts.always(*range(len(population)))
    return observing.last_round(process, population, everyone, settings)


def _targets(observed: Observed, what: str, local: str) -> list[Target]:
    """Every client under attack, by an attacker who takes local variables from there sees it."""
    found = []
    for seen in observed.round.clients:
        one = seen if local == attacker.PRIVATE else seen.public
        if what == BROADCAST:
            one = dataclasses.replace(one, after=observed.round.new_weights)
        client = observed.population[seen.client]
        found.append(Target(one, client.train, client.test))
    return found


def _attackers(
    process: FederatedProcess, state: ServerState, own: Examples, course: Course, seed: int
) -> dict[str, Attacker]:
    """One for each origin of local variables, of which there is one where nothing is local."""
    has_local = any(spec.local for spec in process.model.specs)
    origins = attacker.LOCAL_PARTS if has_local else (attacker.FITTED,)
    training = course.training
    return {
        local: Attacker(process, state, own_examples=own, training=training, seed=seed, local=local)
        for local in origins
    }


def _ask(attacking: Attacker, observed: Observed, what: str) -> list[Outputs]:
    targets = _targets(observed, what, attacking.local)
    return [membership.ask(attacking, target) for target in targets]


def _scores(shadows: list[Outputs], victims: list[Outputs], seed: int) -> dict[str, float]:
    successes = membership.infer(shadows, victims, seed=seed)
    return _means(
        success._asdict() | threshold.on_losses(outputs)._asdict()
        for success, outputs in zip(successes, victims, strict=True)
    )


def _accuracies(outputs: list[Outputs]) -> dict[str, float]:
    """Of the victims' own models."""

    def accuracy(logits: np.ndarray, labels: np.ndarray) -> float:
        return float(np.mean(logits.argmax(axis=-1) == labels))

    return _means(
        {
            "members_accuracy": accuracy(one.members, one.member_labels),
            "others_accuracy": accuracy(one.others, one.other_labels),
        }
        for one in outputs
    )


def _means(of_victims: Iterable[Mapping[str, float]]) -> dict[str, float]:
    each = list(of_victims)
    return {name: float(np.mean([one[name] for one in each])) for name in each[0]}


def _likenesses(inputs: np.ndarray, means: Mapping[int, np.ndarray]) -> dict[str, float]:
    """Of the reconstructions [classes, ...] of one victim, in the order of its classes."""
    table = np.array(
        [[inversion.correlation(x, mean) for mean in means.values()] for x in inputs]
    )  # [classes, classes]
    found = {
        "correlation": float(np.mean(np.diag(table))),
        "recognised": float(np.mean(table.argmax(axis=1) == np.arange(len(table)))),
    }
    if inputs.ndim == 4:
        pairs = zip(inputs, means.values(), strict=True)
        found["ssim"] = float(np.mean([inversion.similarity(*pair) for pair in pairs]))
    return found


def _between_0_and_1(examples: Examples) -> Examples:
    """Images of bytes as the model's first layer would scale them: a search needs slopes."""
    x = examples["x"]
    if x.dtype == np.uint8:
        x = np.divide(x, 255, dtype=np.float32)
    return {"x": x, "y": examples["y"]}
