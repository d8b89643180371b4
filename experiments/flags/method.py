"""Method: what is trained, and how. Several methods run on the same clients and cohorts."""

from absl import flags

from experiments.flags import numbers
from tff_het import methods
from tff_het.learning import acquisition
from tff_het.methods import cgau
from tff_het.models import NETWORKS, auxiliary, keras_model

METHOD = flags.DEFINE_list(
    "method",
    ["hdafl", "fed_avg"],
    f"Methods to compare, of: {', '.join(methods.names())}. A round of centralized is one local "
    "training (local_epochs or local_steps) on the pooled examples of all clients.",
)
POOLED = flags.DEFINE_enum(
    "pooled",
    "clients",
    ["clients", "server"],
    "What centralized trains on: the examples of all clients, or the server's --initial_examples.",
)
ENSEMBLE_SELECTION = flags.DEFINE_enum(
    "ensemble_selection",
    "held_out",
    ["held_out", "test"],
    "What the server evaluates models on (methods opt_fl and mix_fl): its --selection_examples, "
    "or, as the paper, the test set, which makes results too good.",
)
ENSEMBLE_DROPOUT_SAMPLES = numbers.whole(
    "ensemble_dropout_samples",
    None,
    "Dropout passes averaged in such an evaluation. Default: 20.",
)
MODEL = flags.DEFINE_enum(
    "model",
    None,
    list(NETWORKS),
    "The network. Default: what suits the data set.",
)
LOCAL_LAYERS = flags.DEFINE_list(
    "local_layers",
    None,
    "Layers that stay at the client, for methods with a choice. Default: the method's own.",
)
LOCAL_LOSS = flags.DEFINE_enum(
    "local_loss",
    None,
    list(auxiliary.LOCAL_LOSSES),
    "A loss on the local representation, with a network of its own that stays at the client "
    "(method lg_fedavg). Default: none.",
)
LOCAL_LOSS_WEIGHT = numbers.real("local_loss_weight", None, "Weight of --local_loss. Default: 1.")
NORM_WEIGHTS = flags.DEFINE_bool(
    "norm_weights",
    None,
    "Also weight clients by the norm of their update (method lg_fedavg). Default: no.",
)
PROXIMAL_STRENGTH = numbers.real(
    "proximal_strength",
    None,
    "mu: how strongly clients are held near the global model (method fed_prox). Default: 1.",
)
Q = numbers.real(
    "q",
    None,
    "Exponent q: the larger, the more weight clients with a high loss get; 0 weights all equally "
    "(method q_ffl). Default: 0.001.",
)
FACTORS = flags.DEFINE_list(
    "factors",
    None,
    "F of each layer that is factorised, such as conv_1=25,conv_2=25 (method waffle). Default: all "
    "hidden layers, each with as many factors as outputs.",
)
ALPHA_OVER_FACTORS = numbers.real(
    "alpha_over_factors",
    None,
    "alpha / F, of the Indian Buffet Process (method waffle). Default: 1.",
    above=True,
)
TEMPERATURE = numbers.real(
    "temperature",
    None,
    "Temperature of the relaxed Bernoulli (method waffle). Default: 2/3.",
    above=True,
)
POSTERIOR_RATE = numbers.real(
    "posterior_rate",
    None,
    "How many times faster than everything else clients learn which factors they use (method "
    "waffle). Default: 100000.",
    above=True,
)
EVALUATION_SAMPLES = numbers.whole(
    "evaluation_samples",
    None,
    "Draws of the factors that predictions are averaged over (method waffle). Default: 0, the "
    "posterior's mean instead.",
    low=0,
)
KEEP_GLOBALS = flags.DEFINE_bool(
    "keep_globals",
    None,
    "Clients predict with the global variables as they were after their own last training (method "
    "waffle). Default: no.",
)
CGAU_VARIANT = flags.DEFINE_enum(
    "cgau_variant",
    None,
    cgau.VARIANTS,
    "Whether clients keep their conditioning (private, the default) or it is averaged like all "
    "weights (shared_one_hot, as in the authors' code).",
)
CONDITION_OUTPUT = flags.DEFINE_bool(
    "condition_output", None, "Condition the last layer too (method cgau). Default: no."
)
LOSS = flags.DEFINE_enum(
    "loss",
    "cross_entropy",
    ["cross_entropy", "cross_entropy_of_softmax"],
    "The loss. cross_entropy_of_softmax takes the softmax for logits, as LG-FedAvg's code does.",
)
STANDARDIZE = flags.DEFINE_bool(
    "standardize",
    False,
    "Scale inputs to mean 0 and variance 1 over the training examples, for each channel.",
)
BIAS = flags.DEFINE_bool("bias", True, "Whether layers add a bias.")
INITIALIZATION = flags.DEFINE_enum(
    "initialization",
    "glorot",
    list(keras_model.INITIALIZATIONS),
    "Initial weights: Keras's default (glorot), or PyTorch's (fan_in), which is smaller.",
)
CLASS_WEIGHTS = flags.DEFINE_list(
    "class_weights",
    None,
    "Weight of each class in the loss, such as 1,50. Default: equal weights.",
)
PROTECTED = flags.DEFINE_list(
    "protected",
    None,
    "Columns of 0 and 1 (of adult: race,sex) that an adversary predicts from the network's "
    "representations while both are trained. Default: no adversary.",
)
ADVERSARY_WEIGHTS = flags.DEFINE_list(
    "adversary_weights",
    None,
    "lambda: how strongly the network is trained against the adversary, one number for each of "
    "--protected; 0 leaves the network unaffected. Default: 1 each.",
)
ADVERSARY_LAYER = flags.DEFINE_string(
    "adversary_layer", None, "The layer that the adversary sees. Default: the last hidden one."
)
ADVERSARY_STEPS = numbers.whole(
    "adversary_steps",
    None,
    "The adversary learns from every batch, the network from one in this many. Default: 1.",
)
ACQUISITION = flags.DEFINE_enum(
    "acquisition",
    None,
    acquisition.NAMES,
    "Active learning: clients pick training examples from a private pool with this function. "
    "--local_epochs are then passes over the acquired examples, which are dropped afterwards. "
    "Default: clients train on all of their examples.",
)
ACQUISITION_SIZE = numbers.whole(
    "acquisition_size", None, "Examples in an acquisition. Default: 400."
)
ACQUISITIONS_PER_ROUND = numbers.whole(
    "acquisitions_per_round", None, "Acquisitions in a round. Default: 1."
)
POOL_SIZE = numbers.whole("pool_size", None, "Examples in a client's pool. Default: 4000.")
KEPT_PER_CLASS = numbers.whole(
    "kept_per_class",
    None,
    "Examples of each class that a client trains on beside those of every acquisition. Default: 0.",
    low=0,
)
DROPOUT_SAMPLES = numbers.whole(
    "dropout_samples",
    None,
    "Predictions with dropout that the pool is scored by (all of --acquisition but random). "
    "Default: 20.",
)
LOCAL_STATISTICS = flags.DEFINE_bool(
    "local_statistics",
    False,
    "Clients keep the moving statistics of their batch normalisation. Default: they are averaged.",
)
LOCAL_EPOCHS = numbers.whole(
    "local_epochs", None, "Passes over a client's examples in a round (E)."
)
LOCAL_STEPS = numbers.whole("local_steps", None, "Steps in a round, instead of --local_epochs.")
AT_MOST_ONE_PASS = flags.DEFINE_bool(
    "at_most_one_pass", False, "With --local_steps: stop at the end of the first pass."
)
BATCH_SIZE = numbers.whole("batch_size", None, "Examples in a step (B).")
SHUFFLE = flags.DEFINE_bool("shuffle", True, "Whether each pass has an order of its own.")
CLIENT_OPTIMIZER = flags.DEFINE_enum(
    "client_optimizer", "sgd", ["sgd", "adam"], "The clients' optimizer, new in every round."
)
CLIENT_LEARNING_RATE = numbers.real("client_learning_rate", None, "Its learning rate.", above=True)
CLIENT_MOMENTUM = numbers.real("client_momentum", None, "Its momentum (sgd).", high=1.0, below=True)
LEARNING_RATE_DECAY = numbers.real(
    "learning_rate_decay",
    0.0,
    "In round t, counted from 0, the clients' rate is client_learning_rate / (1 + decay * t).",
)
WEIGHT_DECAY = numbers.real("weight_decay", 0.0, "L2 weight decay in the clients' gradients.")
CLIP_NORM = numbers.real(
    "clip_norm", None, "Global norm that gradients are clipped to.", above=True
)
AUGMENT = flags.DEFINE_bool("augment", False, "Random crops (4 pixels) and mirror images.")
SERVER_OPTIMIZER = flags.DEFINE_enum(
    "server_optimizer", None, ["sgd", "adam", "yogi"], "The server's. Default: plain averaging."
)
SERVER_LEARNING_RATE = numbers.real(
    "server_learning_rate", None, "Learning rate of --server_optimizer.", above=True
)
AGGREGATOR = flags.DEFINE_enum(
    "aggregator",
    "mean",
    ["mean", "robust", "dp", "compressed"],
    "How the server combines updates: the method's mean; with large updates zeroed and clipped "
    "(robust); clipped, every client the same, with noise for differential privacy (dp); or "
    "quantised before they are sent (compressed).",
)
NOISE_MULTIPLIER = numbers.real(
    "noise_multiplier",
    None,
    "Standard deviation of the noise in the sum of updates, over --update_clip_norm "
    "(--aggregator=dp).",
)
UPDATE_CLIP_NORM = numbers.real(
    "update_clip_norm",
    None,
    "Norm that a client's update is clipped to (--aggregator=dp).",
)
DELTA = numbers.real(
    "delta",
    None,
    "The delta that epsilon is computed for, best below 1 / number of clients (--aggregator=dp). "
    "Default: 1e-5.",
    high=1.0,
    above=True,
    below=True,
)
QUANTIZATION_BITS = numbers.whole(
    "quantization_bits",
    None,
    "Bits per number sent (--aggregator=compressed). Default: 8.",
    high=16,
)
QUANTIZATION_THRESHOLD = numbers.whole(
    "quantization_threshold",
    None,
    "Only variables of more numbers than this are quantised (--aggregator=compressed). Default: "
    "20000.",
    low=0,
)
