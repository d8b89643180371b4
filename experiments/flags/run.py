"""Run: how long, on what, and where the results go."""

from absl import flags

from experiments.flags import numbers
from tff_het.simulation import runtime, tracking

ROUNDS = numbers.whole("rounds", None, "Rounds of training. Default: what suits the data set.")
CLIENTS_PER_ROUND = numbers.whole(
    "clients_per_round", None, "Clients that train in a round. Default: all."
)
SAMPLING = flags.DEFINE_enum(
    "sampling",
    "uniform",
    ["uniform", "in_turn"],
    "How a cohort is chosen: clients at random, or one after another, beginning with the first "
    "(with --clients_per_round=1: sequential training).",
)
GOAL_ACCURACY = numbers.real(
    "goal_accuracy",
    None,
    "Train until the mean accuracy over clients reaches this (0.975, say), for --rounds at most; "
    "looked for whenever clients are evaluated.",
    above=True,
    high=1.0,
)
GOAL_SELECTION = flags.DEFINE_enum(
    "goal_selection",
    "validation",
    ["validation", "test"],
    "What --goal_accuracy is evaluated on; test, as papers do, makes results too good.",
)
START_FROM = flags.DEFINE_string(
    "start_from",
    None,
    "Folder of a finished run of one method (OUTPUT_DIR/fed_avg) whose model training starts from.",
)
EVAL_EVERY = numbers.whole("eval_every", 1, "Rounds between two evaluations.")
NEW_TEST = flags.DEFINE_bool(
    "new_test",
    False,
    "After the last round, test the ensemble of all clients' models on the whole test set: one "
    "prediction per client and example.",
)
SEED = numbers.whole("seed", 0, "Seed of every random draw of the run.", low=0, high=2**63 - 1)
RUNTIME = flags.DEFINE_enum(
    "runtime",
    "in_process",
    list(runtime.RUNTIMES),
    "What executes the rounds: this process, or TFF's own worker (the reference).",
)
CLIENTS_IN_PARALLEL = numbers.whole(
    "clients_in_parallel",
    None,
    "Clients that train at the same time. Default: one a core. Results do not depend on it.",
)
WORKERS = flags.DEFINE_list(
    "workers",
    None,
    "Where `python -m experiments.worker` runs, as host:port,host:port,...: clients train there, "
    "whatever --runtime says, with the numbers of --runtime=worker. Trusted networks only; see "
    "docs/several_machines.md.",
)
WORKER_DEADLINE = numbers.real(
    "worker_deadline",
    None,
    "Seconds without a sign of life after which one of --workers is lost, and its clients are done "
    "again by the others. Default: 60.",
    above=True,
)
SHARED_EXAMPLES_DIR = flags.DEFINE_string(
    "shared_examples_dir",
    None,
    "A folder that all --workers see under the same path: they read clients' examples there, "
    "instead of being sent them.",
)
OUTPUT_DIR = flags.DEFINE_string(
    "output_dir",
    "runs/demo",
    "Folder of the results. An unfinished run of the same flags in it is continued.",
)
CHECKPOINT_EVERY = numbers.whole("checkpoint_every", 1, "Rounds between two checkpoints.")
KEEP_CHECKPOINTS = numbers.whole("keep_checkpoints", 2, "How many checkpoints to keep.")
CLIENT_STORE = flags.DEFINE_enum(
    "client_store",
    "memory",
    ["memory", "disk"],
    "Where client states are kept between rounds; disk for very many clients, of whom nothing "
    "but their examples' arrays stays in memory then.",
)
TRACKING = flags.DEFINE_list(
    "tracking",
    ["tensorboard"],
    f"Where each round's metrics are logged, of: {', '.join(tracking.TRACKERS)} (in "
    "OUTPUT_DIR/mlruns; needs the extra tracking). Empty: the tables only.",
)
