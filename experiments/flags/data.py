"""Data: what the examples are, and which client holds which."""

from absl import flags

from experiments.flags import numbers
from tff_het import datasets, partitions
from tff_het.partitions.clusters import ASSIGNMENTS, PROJECTIONS

DATASET = flags.DEFINE_enum("dataset", "digits", datasets.names(), "The data set.")
POSITIVE_LABEL = flags.DEFINE_string(
    "positive_label",
    None,
    "Name of a class: the task is to tell it from all others. Default: all classes.",
)
DATA_DIR = flags.DEFINE_string(
    "data_dir",
    None,
    "A folder with one folder for each data set, named as it is, holding the original files. "
    "Without it, data sets are downloaded (digits comes with scikit-learn).",
)
PARTITION = flags.DEFINE_enum(
    "partition",
    None,
    partitions.names(),
    "How examples are split over clients. Default: what suits the data set.",
)
NUM_CLIENTS = numbers.whole(
    "num_clients", None, "Number of clients. Default: what suits the data set."
)
SHARDS_PER_CLIENT = numbers.whole(
    "shards_per_client", None, "Shards a client gets (partitions shards and multimodal)."
)
SINGLE_CLASS = flags.DEFINE_bool(
    "single_class", None, "Cut every class by itself into shards (partition shards). Default: no."
)
MINORITY_CLASSES = flags.DEFINE_list(
    "minority_classes",
    None,
    "Labels, such as 0,2,4: the classes that the minority's clients hold (partition multimodal).",
)
MINORITY_CLIENTS = numbers.whole(
    "minority_clients",
    None,
    "How many of --num_clients are the minority (partition multimodal).",
)
DIRICHLET_ALPHA = numbers.real(
    "dirichlet_alpha", None, "Smaller is more skewed (partition dirichlet).", low=1e-6
)
DIRICHLET_MIN_EXAMPLES = numbers.whole(
    "dirichlet_min_examples",
    None,
    "Training examples that each client gets at least (partition dirichlet).",
)
CLIENT_CLASSES = flags.DEFINE_string(
    "client_classes",
    None,
    "Classes of each client, such as '0,1;2,3;4,5,6;7,8,9' (partition disjoint_classes).",
)
GROUP_COLUMN = flags.DEFINE_string(
    "group_column", None, "Column with the natural owner of an example (partition groups)."
)
MAX_GROUPS = numbers.whole(
    "max_groups", None, "Use this many of the natural owners (partition groups)."
)
SHARED_CLASSES = numbers.whole(
    "shared_classes",
    None,
    "This many classes stay with all clients; each other class goes to one client (partition "
    "groups). Default: all stay.",
    low=0,
)
CLUSTER_PROJECTION = flags.DEFINE_enum(
    "cluster_projection",
    None,
    PROJECTIONS,
    "What features are projected with before they are clustered (partition clusters). Default: "
    "principal components.",
)
CLUSTER_COMPONENTS = numbers.whole(
    "cluster_components",
    None,
    "How many dimensions they are projected to (partition clusters). Default: 2.",
)
CLUSTER_ASSIGNMENT = flags.DEFINE_enum(
    "cluster_assignment",
    None,
    ASSIGNMENTS,
    "Examples go to the nearest cluster of their own class, or of all classes (partition "
    "clusters). Default: of their own.",
)
SHUFFLE_FRACTION = numbers.real(
    "shuffle_fraction",
    None,
    "Share of all examples that change places at random: 0 for clients as different as can be, 1 "
    "for clients that are alike (partition clusters). Default: 0.",
    high=1.0,
)
INITIAL_EXAMPLES = numbers.whole(
    "initial_examples",
    0,
    "Training examples, drawn at random, that no client gets and the server trains on before the "
    "first round: --method=centralized --pooled=server, from whose run others start.",
    low=0,
)
SELECTION_EXAMPLES = numbers.whole(
    "selection_examples",
    0,
    "Training examples, drawn at random, that no client gets and the server evaluates models on "
    "(methods opt_fl and mix_fl).",
    low=0,
)
ALLOW_EMPTY_TEST = flags.DEFINE_bool(
    "allow_empty_test", False, "Accept clients without test examples; they are not tested."
)
LOCAL_TEST_FRACTION = numbers.real(
    "local_test_fraction",
    None,
    "Test each client on this share of its own training examples; the data set's test examples "
    "go to no client. Default: they are split over clients as the training examples are.",
    high=0.9,
)
VALIDATION_FRACTION = numbers.real(
    "validation_fraction",
    0.0,
    "Share of each client's training examples that is held out for validation.",
    high=0.9,
)
