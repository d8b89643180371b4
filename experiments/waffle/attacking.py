"""Attacks on clients of one method: membership inference and model inversion.

Two federations train alike, with examples assigned at random from one data set: the victims, and
the attacker's own clients, the shadows. Both are observed in their last round. The attacker fits
local variables on examples that neither holds.
"""

import dataclasses
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

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
from tff_het.learning.local_training import LocalTraining
from tff_het.models import architectures
from tff_het.simulation import cohorts, loop

PICTURES = "pictures.npz"
# An observer of one client's update, and one of what the server sends to the next clients.
UPDATE, BROADCAST = "update", "broadcast"


@dataclasses.dataclass(frozen=True)
class Course:
    """The attacked model."""

    dataset: str
    model: str
    method: str
    options: Mapping[str, Any]  # Of the method.
    num_clients: int  # Of each federation; all train in every round.
    num_examples: int  # That a client trains on; as many others are not its, or the attacker's.
    rounds: int  # The last one is observed.
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


class _Attack:
    """What both attacks begin with: examples and a process."""

    def __init__(self, course: Course, train: Examples, num_classes: int, seed: int):
        self._course, self._seed = course, seed
        self.victims, self.shadows, self._own = deal(train, course, seed)
        momentum = course.momentum or None
        optimizer = tff.learning.optimizers.build_sgdm(course.learning_rate, momentum)
        # The clients', with which the attacker fits local variables too.
        size, epochs = course.batch_size, course.local_epochs
        self._training = LocalTraining(optimizer, batch_size=size, epochs=epochs)
        made = architectures.make(course.model, self.victims.element_spec, num_classes)
        self.process = methods.build(
            course.method, made, self._training, seed=seed, **course.options
        )

    def observe(self, population: Population) -> Observed:
        """Trains a federation, and observes its last round, the private part included."""
        settings = loop.Settings(rounds=self._course.rounds, seed=self._seed)
        everyone = cohorts.always(*range(len(population)))
        return observing.last_round(self.process, population, everyone, settings)

    def attackers(self, observed: Observed) -> dict[str, Attacker]:
        """One for each origin of local variables, of which there is one where nothing is local."""
        has_local = any(spec.local for spec in self.process.model.specs)
        origins = attacker.LOCAL_PARTS if has_local else (attacker.FITTED,)
        of: dict[str, Any] = {"own_examples": self._own, "training": self._training}
        of["seed"] = self._seed
        return {o: Attacker(self.process, observed.state, local=o, **of) for o in origins}


def infer_membership(
    *, seed: int, folder: Path, data_dir: str | None, **course: Any
) -> dict[str, float]:
    """Asks who was a member, with each choice of local variables; `course` as `Course`.

    Returns:
      Means over victims: `accuracy`, `f1`, `auc` and `true_positives` by what was observed and
      where local variables come from, such as `update_fitted_accuracy`; the accuracies of the
      victims' own models on their members and on others.
    """
    del folder
    data = data_sets.load(course["dataset"], data_dir)
    attack = _Attack(Course(**course), data.train, data.num_classes, seed)
    shadows, victims = attack.observe(attack.shadows), attack.observe(attack.victims)
    attackers = attack.attackers(shadows)
    own_models = attackers.get(attacker.PRIVATE, attackers[attacker.FITTED])
    found = _means(
        {
            "members_accuracy": np.mean(one.members.argmax(axis=-1) == one.member_labels),
            "others_accuracy": np.mean(one.others.argmax(axis=-1) == one.other_labels),
        }
        for one in _ask(own_models, victims, UPDATE)
    )
    for local, attacking in attackers.items():
        for what in (UPDATE, BROADCAST) if local == attacker.FITTED else (UPDATE,):
            asked = _ask(attacking, victims, what)
            inferred = membership.infer(_ask(attacking, shadows, what), asked, seed=seed)
            scores = _means(
                success._asdict() | threshold.on_losses(outputs)._asdict()
                for success, outputs in zip(inferred, asked, strict=True)
            )
            found |= {f"{what}_{local}_{name}": value for name, value in scores.items()}
    return found


def invert(
    *, seed: int, folder: Path, data_dir: str | None, search: Mapping[str, Any], **course: Any
) -> dict[str, float]:
    """Looks for the inputs that the victims' observed models are most sure of, class by class.

    The folder receives the pictures of the first victim. `search` is as `inversion.Settings`,
    `course` as `Course`.

    Returns:
      Means over victims and their classes, by where local variables come from: `correlation` and,
      of images, `ssim` with the mean of the victim's own members of the class; `recognised`, the
      share of reconstructions that are most like the mean of the right class.
    """
    data = data_sets.load(course["dataset"], data_dir)
    train = {"x": data.train["x"], "y": data.train["y"]}
    if train["x"].dtype == np.uint8:
        # As the model's first layer would scale them: a search needs slopes.
        train["x"] = np.divide(train["x"], 255, dtype=np.float32)
    attack = _Attack(Course(**course), train, data.num_classes, seed)
    search_for = inversion.Inversion(attack.process, inversion.Settings(**search))
    victims = attack.observe(attack.victims)
    found: dict[str, float] = {}
    pictures: dict[str, np.ndarray] = {}
    for local, attacking in attack.attackers(victims).items():
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


def deal(examples: Examples, course: Course, seed: int) -> tuple[Population, Population, Examples]:
    """Assigns examples at random: to victims, to shadows, and to the attacker.

    The test examples of a client are those that it does not train on.

    Raises:
      ValueError: If there are too few.
    """
    n, groups = course.num_examples, 4 * course.num_clients + 1
    if (there := len(examples["y"])) < n * groups:
        raise ValueError(
            f"{2 * course.num_clients} clients with {n} examples to train on and as many others, "
            f"and {n} for the attacker, come to {n * groups}; the data set has {there}."
        )
    order = seeding.generator(seed, seeding.ATTACK).permutation(there)
    rows = order[: n * groups].reshape(groups, n)
    parts = [{name: examples[name][part] for name in ("x", "y")} for part in rows]
    nothing = {name: column[:0] for name, column in parts[0].items()}

    def population() -> Population:
        return Population(
            Client(str(k), train=parts.pop(), validation=nothing, test=parts.pop())
            for k in range(course.num_clients)
        )

    return population(), population(), parts.pop()


def _targets(observed: Observed, what: str, local: str) -> list[Target]:
    """Every client under attack, by an attacker whose local variables come from `local`."""
    found = []
    for seen in observed.round.clients:
        one = seen if local == attacker.PRIVATE else seen.public
        if what == BROADCAST:
            one = dataclasses.replace(one, after=observed.round.new_weights)
        client = observed.population[seen.client]
        found.append(Target(one, client.train, client.test))
    return found


def _ask(attacking: Attacker, observed: Observed, what: str) -> list[Outputs]:
    targets = _targets(observed, what, attacking.local)
    return [membership.ask(attacking, target) for target in targets]


def _means(of_victims: Iterable[Mapping[str, float]]) -> dict[str, float]:
    each = list(of_victims)
    return {name: float(np.mean([one[name] for one in each])) for name in each[0]}


def _likenesses(inputs: np.ndarray, means: Mapping[int, np.ndarray]) -> dict[str, float]:
    """Of the reconstructions [classes, ...] of one victim, in the order of its classes."""
    table = np.array([[inversion.correlation(x, m) for m in means.values()] for x in inputs])
    right = table.argmax(axis=1) == np.arange(len(table))  # The table is [classes, classes].
    found = {"correlation": float(np.diag(table).mean()), "recognised": float(right.mean())}
    if inputs.ndim == 4:
        pairs = zip(inputs, means.values(), strict=True)
        found["ssim"] = float(np.mean([inversion.similarity(*pair) for pair in pairs]))
    return found
