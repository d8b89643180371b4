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
from tff_het.attacks import inversion, membership, threshold
from tff_het.attacks.attacker import FITTED, LOCAL_PARTS, PRIVATE, Attacker, Examples
from tff_het.attacks.membership import Outputs, Target
from tff_het.backend.names import tff
from tff_het.clients import Client, Population
from tff_het.learning.client_work import LocalTraining
from tff_het.models import architectures
from tff_het.simulation import cohorts, loop

PICTURES = "pictures.npz"
# An observer of one client's update, and one of what the server sends to the next clients.
UPDATE, BROADCAST = "update", "broadcast"


class Course:
    """What both attacks begin with: two federations, and the process that trains either."""

    def __init__(
        self,
        seed: int,
        data_dir: str | None,
        *,
        dataset: str,
        model: str,
        method: str,
        options: Mapping[str, Any],  # Of the method.
        num_clients: int,  # Of each federation; all train in every round.
        num_examples: int,  # That a client trains on; as many others are not its.
        rounds: int,  # The last one is observed.
        local_epochs: int,
        batch_size: int,
        learning_rate: float,
        momentum: float,
        scaled: bool = False,  # Whether images are divided by 255.
    ):
        self.data = data_sets.load(dataset, data_dir)
        train = {name: self.data.train[name] for name in ("x", "y")}
        if scaled:
            train["x"] = np.divide(train["x"], 255, dtype=np.float32)
        self.victims, self.shadows, own = deal(train, num_clients, num_examples, seed)
        optimizer = tff.learning.optimizers.build_sgdm(learning_rate, momentum or None)
        training = LocalTraining(optimizer, batch_size=batch_size, epochs=local_epochs)
        made = architectures.make(model, self.victims.element_spec, self.data.num_classes)
        self.process = methods.build(method, made, training, seed=seed, **options)
        self._settings = loop.Settings(rounds=rounds, seed=seed)
        self._fitting: dict[str, Any] = {"own_examples": own, "training": training, "seed": seed}

    def observe(self, population: Population) -> Observed:
        """Trains a federation, and observes its last round, the private part included."""
        everyone = cohorts.always(*range(len(population)))
        return observing.last_round(self.process, population, everyone, self._settings)

    def attackers(self, observed: Observed) -> dict[str, Attacker]:
        """One for each origin of local variables, of which there is one where nothing is local."""
        has_local = any(spec.local for spec in self.process.model.specs)
        origins = LOCAL_PARTS if has_local else (FITTED,)
        of = (self.process, observed.state)
        return {origin: Attacker(*of, local=origin, **self._fitting) for origin in origins}


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
    made = Course(seed, data_dir, **course)
    shadows, victims = made.observe(made.shadows), made.observe(made.victims)
    attackers = made.attackers(shadows)
    attacks = [*((UPDATE, local) for local in attackers), (BROADCAST, FITTED)]
    asked = {(what, local): _ask(attackers[local], victims, what) for what, local in attacks}
    found = _means(
        {
            "members_accuracy": np.mean(one.members.argmax(axis=-1) == one.member_labels),
            "others_accuracy": np.mean(one.others.argmax(axis=-1) == one.other_labels),
        }
        for one in asked[UPDATE, PRIVATE if PRIVATE in attackers else FITTED]
    )
    for (what, local), outputs in asked.items():
        inferred = membership.infer(_ask(attackers[local], shadows, what), outputs, seed=seed)
        scores = _means(
            success._asdict() | threshold.on_losses(one)._asdict()
            for success, one in zip(inferred, outputs, strict=True)
        )
        found |= {f"{what}_{local}_{name}": value for name, value in scores.items()}
    return found


def invert(
    *, seed: int, folder: Path, data_dir: str | None, search: Mapping[str, Any], **course: Any
) -> dict[str, float]:
    """Looks for the inputs that the victims' observed models are most sure of, class by class.

    The folder receives the pictures of the first victim. `search` is as `inversion.Settings`,
    `course` as `Course`, of a data set of images.

    Returns:
      Means over victims and their classes, by where local variables come from: `correlation` and
      `ssim` with the mean of the victim's own members of the class; `recognised`, the share of
      reconstructions that are most like the mean of the right class.
    """
    # As the model's first layer would scale images: a search needs slopes.
    made = Course(seed, data_dir, scaled=True, **course)
    search_for = inversion.Inversion(made.process, inversion.Settings(**search))
    victims = made.observe(made.victims)
    found: dict[str, float] = {}
    pictures: dict[str, np.ndarray] = {}
    for local, attacking in made.attackers(victims).items():
        results = []
        for target in _targets(attacking, victims, UPDATE):
            means = inversion.class_means(target.members)
            classes, images = list(means), np.stack(list(means.values()))
            inputs = search_for.invert(attacking.reconstruct(target.seen), classes, seed=seed)
            results.append(_likenesses(inputs, images))
            of_victim = {local: inputs, "means": images}
            pictures = {
                **of_victim,
                "classes": np.array(made.data.class_names)[classes],
                **pictures,
            }
        found |= {f"{local}_{name}": value for name, value in _means(results).items()}
    np.savez_compressed(folder / PICTURES, **pictures)
    return found


def deal(
    examples: Examples, num_clients: int, num_examples: int, seed: int
) -> tuple[Population, Population, Examples]:
    """Assigns examples at random: to victims, to shadows, and to the attacker.

    The test examples of a client are those that it does not train on.

    Raises:
      ValueError: If there are too few.
    """
    parts = 4 * num_clients + 1
    if (there := len(examples["y"])) < num_examples * parts:
        raise ValueError(
            f"{2 * num_clients} clients with {num_examples} examples to train on and as many "
            f"others, and {num_examples} for the attacker, come to {num_examples * parts}; the "
            f"data set has {there}."
        )
    order = seeding.generator(seed, seeding.ATTACK).permutation(there)
    rows = np.split(order[: num_examples * parts], parts)

    def taken(rows: np.ndarray) -> Examples:
        return {name: column[rows] for name, column in examples.items()}

    def population() -> Population:
        return Population(
            Client(str(k), taken(rows.pop()), validation=taken(order[:0]), test=taken(rows.pop()))
            for k in range(num_clients)
        )

    return population(), population(), taken(rows.pop())


def _targets(attacking: Attacker, observed: Observed, what: str) -> list[Target]:
    """Every client under attack; its private part is for those attackers alone who have it."""
    found = []
    for seen in observed.round.clients:
        after = seen.after if what == UPDATE else observed.round.new_weights
        private = seen.private if attacking.local == PRIVATE else None
        client = observed.population[seen.client]
        one = dataclasses.replace(seen, after=after, private=private)
        found.append(Target(one, client.train, client.test))
    return found


def _ask(attacking: Attacker, observed: Observed, what: str) -> list[Outputs]:
    return [membership.ask(attacking, one) for one in _targets(attacking, observed, what)]


def _means(of_victims: Iterable[Mapping[str, float]]) -> dict[str, float]:
    each = list(of_victims)
    return {name: float(np.mean([one[name] for one in each])) for name in each[0]}


def _likenesses(inputs: np.ndarray, means: np.ndarray) -> dict[str, float]:
    """Of the reconstructions [classes, ...] of one victim and the means of the same classes."""
    table = np.array([[inversion.correlation(x, mean) for mean in means] for x in inputs])
    pairs = zip(inputs, means, strict=True)
    return {
        "correlation": np.diag(table).mean(),
        "recognised": np.mean(table.argmax(axis=1) == np.arange(len(table))),
        "ssim": np.mean([inversion.similarity(*pair) for pair in pairs]),
    }
