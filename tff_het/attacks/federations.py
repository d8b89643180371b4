"""Attacks on all clients of a method: membership inference and model inversion.

Two federations train alike: the victims, and the attacker's own clients, the shadows. Both are
observed in their last round. The attacker fits local variables on examples that neither holds.
"""

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from tff_het import seeding
from tff_het.attacks import inversion, membership, observation, threshold
from tff_het.attacks.attacker import FITTED, LOCAL_PARTS, PRIVATE, Attacker, Examples
from tff_het.attacks.membership import Outputs, Target
from tff_het.clients import Client, Population
from tff_het.evaluation import divergence
from tff_het.learning.local_training import LocalTraining
from tff_het.learning.process import FederatedProcess
from tff_het.simulation import cohorts, loop

# An observer of one client's update, and one of what the server sends to the next clients.
UPDATE, BROADCAST = "update", "broadcast"


@dataclasses.dataclass(frozen=True, eq=False)
class Federations:
    """Two federations of clients that all train in every round, and the attacker's examples.

    Attributes:
      process: What trains either.
      settings: Of training; the attacks use its seed too.
      training: How the attacker fits local variables.
      victims: Those under attack. Test examples are as many as they train on.
      shadows: The attacker's clients; likewise.
      own_examples: The attacker's other examples.
    """

    process: FederatedProcess
    settings: loop.Settings
    training: LocalTraining
    victims: Population
    shadows: Population
    own_examples: Examples

    def infer_membership(self) -> dict[str, float]:
        """Asks who was a member, with each choice of local variables.

        Returns:
          Means over victims: `accuracy`, `f1`, `auc` and `true_positives` by what was observed and
          where local variables come from, such as `update_fitted_accuracy`; the accuracies of the
          victims' own models on their members and on others.
        """
        shadows, victims = self._ask(self.shadows), self._ask(self.victims)
        own = victims[UPDATE, PRIVATE if (UPDATE, PRIVATE) in victims else FITTED]
        found = _means(
            {
                "members_accuracy": np.mean(one.right[one.member]),
                "others_accuracy": np.mean(one.right[~one.member]),
            }
            for one in own
        )
        for (what, local), outputs in victims.items():
            inferred = membership.infer(shadows[what, local], outputs, seed=self.settings.seed)
            scores = _means(
                success._asdict() | threshold.on_losses(one)._asdict()
                for success, one in zip(inferred, outputs, strict=True)
            )
            found |= {f"{what}_{local}_{name}": value for name, value in scores.items()}
        return found

    def invert(self, search: inversion.Settings) -> tuple[dict[str, float], dict[str, np.ndarray]]:
        """Looks for the images that the victims' observed models are most sure of, by class.

        Returns:
          Means over victims and their classes, by where local variables come from: `correlation`
          and `ssim` with the mean of the victim's own members of the class; `recognised`, the share
          of reconstructions that are most like the mean of the right class. And of the first
          victim: `classes`, `means` and, by where local variables come from, reconstructions.
        """
        search_for, seed = inversion.Inversion(self.process, search), self.settings.seed
        targets = self._observe(self.victims)[UPDATE]
        found: dict[str, float] = {}
        pictures: dict[str, np.ndarray] = {}
        for local, attacker in self._attackers().items():
            results = []
            for target in targets:
                means = inversion.class_means(target.members)
                classes, images = list(means), np.stack(list(means.values()))
                inputs = search_for.invert(attacker.reconstruct(target.seen), classes, seed=seed)
                results.append(_likenesses(inputs, images))
                pictures = {local: inputs, "means": images, "classes": np.array(classes)} | pictures
            found |= {f"{local}_{name}": value for name, value in _means(results).items()}
        return found, pictures

    def _observe(self, population: Population) -> dict[str, list[Target]]:
        """Trains a federation; returns its clients by what of the last round is observed.

        The attacker's own clients shuffle and drop out by the seeds of the attacked ones, which no
        real attacker knows.
        """
        everyone = cohorts.always(*range(len(population)))
        seen = observation.last_round(self.process, population, everyone, self.settings)
        sent_on = [dataclasses.replace(one, after=seen.new_weights) for one in seen.clients]
        examples = [(client.train, client.test) for client in population]
        return {
            what: [Target(one, *own) for one, own in zip(clients, examples, strict=True)]
            for what, clients in ((UPDATE, seen.clients), (BROADCAST, sent_on))
        }

    def _attackers(self) -> dict[str, Attacker]:
        """One for each origin of what clients keep; one in all where they keep no model."""
        of = (self.process, self.process.initialize())
        kept = self.process.init_state(0, self.settings.seed, of[1]).work
        keeps_model = self.process.adapts and bool(tf.nest.flatten(kept))
        has_local = keeps_model or any(spec.local for spec in self.process.model.specs)
        own: dict[str, Any] = {"own_examples": self.own_examples, "training": self.training}
        return {
            local: Attacker(*of, seed=self.settings.seed, local=local, **own)
            for local in (LOCAL_PARTS if has_local else (FITTED,))
        }

    def _ask(self, population: Population) -> dict[tuple[str, str], list[Outputs]]:
        """By what is observed and where local variables come from, for each client."""
        attackers, targets = self._attackers(), self._observe(population)
        attacks = [*((UPDATE, local) for local in attackers), (BROADCAST, FITTED)]
        return {
            (what, local): [membership.ask(attackers[local], target) for target in targets[what]]
            for what, local in attacks
        }


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


def _means(of_victims: Iterable[Mapping[str, float]]) -> dict[str, float]:
    each = list(of_victims)
    return {name: float(np.mean([one[name] for one in each])) for name in each[0]}


def _likenesses(inputs: np.ndarray, means: np.ndarray) -> dict[str, float]:
    """Of the reconstructions [classes, ...] of one victim and the means of the same classes."""
    table = np.array([[divergence.pattern_correlation(x, mean) for mean in means] for x in inputs])
    pairs = zip(inputs, means, strict=True)
    return {
        "correlation": np.diag(table).mean(),
        "recognised": np.mean(table.argmax(axis=1) == np.arange(len(table))),
        "ssim": np.mean([inversion.similarity(*pair) for pair in pairs]),
    }
