"""Settings shared by the figures of edge ensembles: devices, names, budgets, assumptions.

A run is named ExFy as in the paper: x passes over every acquired batch, y ensembling steps in its
budget of acquisitions.
"""

from experiments.study.measures import Measure, metric

AVE, OPT, MIX = "AveFL", "OptFL", "MixFL"
METHODS = {AVE: "ave_fl", OPT: "opt_fl", MIX: "mix_fl"}
# The classes of each device (Type I).
CLASSES = {"D1": (0, 1), "D2": (2, 3), "D3": (4, 5, 6), "D4": (7, 8, 9)}
DEVICES = tuple(CLASSES)
NUM_CLASSES = 10
EPOCHS = ("1", "5", "15", "25", "35", "45")
FREQUENCIES = ("10", "5", "2", "1")
BUDGET, LARGE_BUDGET = 10, 20
MOST_EPOCHS, OFTEN, ONCE = EPOCHS[-1], FREQUENCIES[0], FREQUENCIES[-1]
RANDOM, ENTROPY, BALD, RATIOS = "random", "max entropy", "BALD", "variation ratios"
ACQUISITIONS = {
    RANDOM: "random",
    ENTROPY: "max_entropy",
    BALD: "bald",
    RATIOS: "variation_ratios",
}

INITIAL = "Initial"
ENSEMBLE = "Ensemble"
ACCURACY = "ensemble_accuracy"
# Of a run of `experiments.train`, whose model is the ensemble.
TRAINED_ACCURACY = "global_test_accuracy"

SETTINGS = (
    "Fashion-MNIST, four devices. Type I: classes 0, 1 at D1, 2, 3 at D2, 4, 5, 6 at D3 and 7, 8, "
    "9 at D4; acquisitions at random. Type II: a random quarter of the images at each device; "
    "active learning on a pool of 4,000 of them, 350 images in an acquisition beside 50 that are "
    "kept, with weight decay. The server trains on 400 images first (Type II: 1,000); the initial "
    "accuracy is 15 %. Then a budget of 10 or 20 acquisitions of 400 images, E passes over each, "
    "and F ensembling steps in the budget. The network of Table I, without batch normalisation."
)
NOTES = (
    "What the paper does not print, and what is taken here: SGD with rate 0.01, momentum 0.9 (new "
    "with each acquisition) and batches of 32; E = 1, 5, 15, 25, 35 and 45 of Figure 5; E = 45 "
    "and F = 10 wherever a figure does not name them; weight decay 0.0001; 20 passes with dropout; "
    "5 of each class of a device's own images as those that are kept. The initial training takes "
    "steps of rate 0.05 without momentum, five at a time, until the devices' mean accuracy on "
    "validation examples reaches 15 %, or for 500 steps. OptFL and MixFL evaluate models on 1,000 "
    "training images that no device has; the paper's on the test set. None of this was tuned.",
    "A device's accuracy is that of its model on the whole test set after the local training of "
    "the last round, before the ensemble is made.",
)


def run_name(
    epochs: str = MOST_EPOCHS, frequency: str = OFTEN, method: str = AVE, budget: int = BUDGET
) -> str:
    """The paper's name of a run, such as 'E45F10', with what is not in it."""
    name = f"E{epochs}F{frequency}"
    if method != AVE:
        name += f" {method}"
    return name if budget == BUDGET else f"{name}, {budget} acquisitions"


def own_share(device: str) -> float:
    """The share of the test set that is of a device's classes."""
    return len(CLASSES[device]) / NUM_CLASSES


def accuracy(cell: str, of: str = ENSEMBLE) -> Measure:
    """On the whole test set: of the ensemble, or of a device before its last ensembling."""
    return metric(cell, ACCURACY if of == ENSEMBLE else f"{of}_accuracy")
