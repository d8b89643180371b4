"""One run's settings: typed, checked, and the same from flags, YAML and Python.

`RunConfig.of(dataset="digits", method="hdafl", rounds=5)` gives a config; `resolve` merges several
sources and says where each value came from.
"""

import dataclasses
import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, NamedTuple

from experiments.run import options, plugins
from experiments.run.defaults import DEFAULTS
from tff_het import kinds, registry
from tff_het.datasets import DATASETS
from tff_het.kinds import Among, Count, NotNegative, Positive, Repeats, Whole
from tff_het.methods import METHODS
from tff_het.models import NETWORKS
from tff_het.numbers import Number
from tff_het.partitions import PARTITIONS

_Seed = Annotated[int, Number(0, 2**63 - 1, is_whole=True)]


@dataclasses.dataclass(frozen=True)
class Data:
    """Data: what the examples are, and which client holds which.

    Attributes:
      dataset: The data set.
      positive_label: Name of a class: the task is to tell it from all others. Default: all classes.
      data_dir: A folder of original files in a folder for each data set, such as DIR/mnist; for npz
        the file, for pfllib and embedded their folder. Without it, mnist, fashion_mnist, cifar10
        and femnist are downloaded; digits and digits_vqa come with scikit-learn.
      partition: How examples are split over clients. Default: what suits the data set.
      num_clients: Number of clients; 0 with --partition=groups makes each group a client. Default:
        what suits the data set.
      partition_seed: Seed of who holds which examples, validation included. Default: --seed.
      initial_examples: Training examples, drawn at random, that no client gets, for a run of
        its own: --method=centralized --pooled=server. Others start from it by --start_from.
      selection_examples: Training examples of no client; opt_fl and mix_fl evaluate models on them.
      allow_empty_test: Accept clients without test examples; they are not tested.
      local_test_fraction: Test each client on this share of its own training examples; the data
        set's test examples go to no client. Default: they are split as the training examples are.
      merge_test: Split the data set's train and test examples together; with --local_test_fraction.
      validation_fraction: Share of each client's training examples that is held out for validation.
    """

    dataset: Annotated[str, Among(DATASETS)] = "digits"
    positive_label: str | None = None
    data_dir: str | None = None
    partition: Annotated[str, Among(PARTITIONS)] = "disjoint_classes"
    num_clients: Count | None = 5
    partition_seed: _Seed | None = None
    initial_examples: Count = 0
    selection_examples: Count = 0
    allow_empty_test: bool = False
    local_test_fraction: Annotated[float, Number(0.0, 0.9, above=True)] | None = None
    merge_test: bool = False
    validation_fraction: Annotated[float, Number(0.0, 0.9)] = 0.0


@dataclasses.dataclass(frozen=True)
class Method:
    """Method: what is trained. Several methods run on the same clients and cohorts.

    Attributes:
      method: Methods to compare (`tff-het list methods` prints them). A round of centralized is one
        local training (local_epochs or local_steps) on the pooled examples (see --pooled).
      pooled: What centralized trains on: the examples of all clients, or the server's
        --initial_examples.
      ensemble_selection: What the server evaluates models on (methods opt_fl and mix_fl): its
        --selection_examples, or, as the paper, the test set, which makes results too good.
      model: The network (`tff-het list models` prints them). Default: what suits the data set.
      loss: The loss. cross_entropy_of_softmax takes the softmax for logits (LG-FedAvg's code).
      standardize: Scale each channel of x to mean 0 and variance 1 over the training examples.
      bias: Whether layers add a bias.
      initialization: Initial weights: Keras's default (glorot), uniform within sqrt(6 / (fan in +
        fan out)), or PyTorch's (fan_in), uniform within sqrt(1 / fan in).
      model_seed: Seed of the initial weights. Default: --seed.
      local_statistics: Clients keep the moving statistics of their batch normalisation. Default:
        they are averaged.
      class_weights: Weight of each class in the loss, such as 1,50. Default: equal weights.
      protected: Columns of 0 and 1 (of adult: race,sex) that an adversary predicts from the
        network's representations while both are trained. Default: no adversary.
      adversary_weights: lambda: how strongly the network is trained against the adversary, one
        number for each of --protected; 0 leaves the network unaffected. Default: 1 each.
      adversary_layer: The layer that the adversary sees. Default: the last hidden one.
      adversary_steps: Steps of the adversary for each one of the network. Default: 1.
    """

    method: Sequence[Annotated[str, Among(METHODS)]] = ("hdafl", "fed_avg")
    pooled: Literal["clients", "server"] = "clients"
    ensemble_selection: Literal["held_out", "test"] = "held_out"
    model: Annotated[str, Among(NETWORKS)] = "small_cnn"
    loss: Literal["cross_entropy", "cross_entropy_of_softmax"] = "cross_entropy"
    standardize: bool = False
    bias: bool = True
    initialization: Literal["glorot", "fan_in"] = "glorot"
    model_seed: _Seed | None = None
    local_statistics: bool = False
    class_weights: Sequence[Positive] | None = None
    protected: Sequence[str] | None = None
    adversary_weights: Sequence[NotNegative] | None = None
    adversary_layer: str | None = None
    adversary_steps: Whole | None = None


@dataclasses.dataclass(frozen=True)
class Training:
    """Training: what clients do in a round, and how the server combines it.

    Attributes:
      local_epochs: Passes over a client's examples in a round (E).
      local_steps: Steps in a round, instead of --local_epochs.
      at_most_one_pass: With --local_steps: stop at the end of the first pass.
      batch_size: Examples in a step (B). Default: 32, or what suits the data set.
      shuffle: Whether each pass has an order of its own.
      client_optimizer: The clients' optimizer, new in every round.
      client_learning_rate: Its learning rate. Default: 0.05, or what suits the data set.
      client_momentum: Its momentum (sgd). Default: 0, or what suits the data set.
      learning_rate_decay: In round t = 0, 1, ... the rate is client_learning_rate / (1 + decay t).
      weight_decay: L2 weight decay in the clients' gradients.
      clip_norm: Global norm that gradients are clipped to.
      augment: Random crops (4 pixels) and mirror images.
      acquisition: Active learning: clients pick training examples from a private pool with this
        function. --local_epochs are then passes over the acquired examples, which are dropped
        afterwards. Default: clients train on all of their examples.
      acquisition_size: Examples in an acquisition. Default: 400.
      acquisitions_per_round: Acquisitions in a round. Default: 1.
      pool_size: Examples in a client's pool. Default: 4000.
      kept_per_class: Examples of each class to train on beside every acquisition. Default: 0.
      dropout_samples: Predictions with dropout that score the pool (not for random). Default: 20.
      server_optimizer: The server's; needs --server_learning_rate. Default: plain averaging.
      server_learning_rate: Learning rate of --server_optimizer.
      aggregator: How the server combines updates: the method's mean; with large updates zeroed and
        clipped (robust); clipped, every client the same, with noise for differential privacy (dp);
        or quantised before they are sent (compressed).
      noise_multiplier: Standard deviation of the noise in the sum of updates, divided by
        --update_clip_norm; needed for --aggregator=dp.
      update_clip_norm: Norm that a client's update is clipped to; needed for --aggregator=dp.
      delta: Epsilon's delta, best below 1 / number of clients (--aggregator=dp). Default: 1e-5.
      quantization_bits: Bits per number sent (--aggregator=compressed). Default: 8.
      quantization_threshold: Only variables of more numbers than this are quantised
        (--aggregator=compressed). Default: 20000.
    """

    local_epochs: Whole | None = 1
    local_steps: Whole | None = None
    at_most_one_pass: bool = False
    batch_size: Whole = 32
    shuffle: bool = True
    client_optimizer: Literal["sgd", "adam"] = "sgd"
    client_learning_rate: Positive = 0.05
    client_momentum: Annotated[float, Number(0.0, 1.0, below=True)] = 0.0
    learning_rate_decay: NotNegative = 0.0
    weight_decay: NotNegative = 0.0
    clip_norm: Positive | None = None
    augment: bool = False
    acquisition: Literal["random", "max_entropy", "bald", "variation_ratios"] | None = None
    acquisition_size: Whole | None = None
    acquisitions_per_round: Whole | None = None
    pool_size: Whole | None = None
    kept_per_class: Count | None = None
    dropout_samples: Repeats | None = None
    server_optimizer: Literal["sgd", "adam", "yogi"] | None = None
    server_learning_rate: Positive | None = None
    aggregator: Literal["mean", "robust", "dp", "compressed"] = "mean"
    noise_multiplier: NotNegative | None = None
    update_clip_norm: Positive | None = None
    delta: Annotated[float, Number(0.0, 1.0, above=True, below=True)] | None = None
    quantization_bits: Annotated[int, Number(1, 16, is_whole=True)] | None = None
    quantization_threshold: Count | None = None


@dataclasses.dataclass(frozen=True)
class Run:
    """Run: how long, on what, and where the results go.

    Attributes:
      rounds: Rounds of training. Default: what suits the data set.
      clients_per_round: Clients that train in a round. Default: all.
      sampling: How a cohort is chosen: clients at random, or one after another, beginning with the
        first (with --clients_per_round=1: sequential training).
      goal_accuracy: Train until the mean accuracy over clients reaches this (0.975, say), for
        --rounds at most; needs --validation_fraction, or --goal_selection=test.
      goal_selection: What --goal_accuracy is measured on; test, as in papers, flatters the results.
      start_from: Folder of a finished run of one method (OUTPUT_DIR/fed_avg) whose model training
        starts from, or an .npz file of weights (docs/runs.md).
      save_initial_weights: An .npz file for the weights that training starts with.
      eval_every: Rounds between two evaluations.
      evaluate_clients: Clients drawn for each evaluation. Default: all are evaluated.
      new_test: After the last round, test the ensemble of all clients' models on the test set.
      seed: Seed of every random draw of the run.
      plugin: Modules or files (.py) that register methods, networks, data sets or partitions.
      runtime: What executes the rounds: this process; TFF's own worker (the reference); or the
        nodes of a Ray cluster, with the numbers of in_process (docs/several_machines.md).
      clients_in_parallel: Clients that train at a time; results do not change. Default: one a core.
      ray_deadline: Seconds without a sign of life after which a node is lost. Default: 60.
      output_dir: Folder of the results. An unfinished run of the same settings in it is continued.
      checkpoint_every: Rounds between two checkpoints.
      client_store: Where client states are kept between rounds; disk for very many clients.
      tracking: Where each round's metrics are logged, of: tensorboard, mlflow (in
        OUTPUT_DIR/mlruns; needs the extra tracking). Empty: the tables only.
    """

    rounds: Whole = 15
    clients_per_round: Whole | None = None
    sampling: Literal["uniform", "in_turn"] = "uniform"
    goal_accuracy: Annotated[float, Number(0.0, 1.0, above=True)] | None = None
    goal_selection: Literal["validation", "test"] = "validation"
    start_from: str | None = None
    save_initial_weights: str | None = None
    eval_every: Whole = 1
    evaluate_clients: Whole | None = None
    new_test: bool = False
    seed: _Seed = 0
    plugin: Sequence[str] = ()
    runtime: Literal["in_process", "worker", "ray"] = "in_process"
    clients_in_parallel: Whole | None = None
    ray_deadline: Positive | None = None
    output_dir: str = "runs/demo"
    checkpoint_every: Whole = 1
    client_store: Literal["memory", "disk"] = "memory"
    tracking: Sequence[str] = ("tensorboard",)


SECTIONS: dict[str, Any] = {"data": Data, "method": Method, "training": Training, "run": Run}
FIELDS = {n: field for kind in SECTIONS.values() for n, field in registry.settings(kind).items()}

# They change no result (runtime: the last digits), or fingerprints stand for what they name.
WITHOUT_EFFECT = (
    *("runtime", "ray_deadline", "clients_in_parallel"),
    *("output_dir", "data_dir", "checkpoint_every", "client_store"),
    *("tracking", "start_from", "save_initial_weights", "plugin"),
)
# Settings that may change when a run is continued.
NOT_OF_THE_RUN = ("rounds", "new_test", "delta", "method", *WITHOUT_EFFECT)

# A setting and its value, or one with any value -> those that have no meaning without it.
_BELONGING: dict[str, tuple[str, ...]] = {
    "aggregator=dp": ("noise_multiplier", "update_clip_norm", "delta"),
    "aggregator=compressed": ("quantization_bits", "quantization_threshold"),
    "client_optimizer=sgd": ("client_momentum",),
    "local_test_fraction": ("merge_test",),
    "protected": ("adversary_weights", "adversary_layer", "adversary_steps"),
    "acquisition": (
        *("acquisition_size", "acquisitions_per_round", "pool_size", "kept_per_class"),
        "dropout_samples",
    ),
    "goal_accuracy": ("goal_selection",),
    "runtime=ray": ("ray_deadline",),
    "server_optimizer": ("server_learning_rate",),
    "server_learning_rate": ("server_optimizer",),
}


class Layer(NamedTuple):
    """Settings from one source.

    Options are named 'owner.option', or bare for all that have them; values may be texts.
    """

    origin: str  # What it is called: 'flag', a file's name.
    values: Mapping[str, Any]

    def naming(self, name: str, *value: Any) -> str:
        """How an error names a setting, with its value or without."""
        shown = "=".join([name, *map(kinds.text, value)])
        return f"--{shown}" if self.origin in ("flag", "setting") else f"{self.origin}: {shown}"

    def parsed(self, name: str, field: registry.Parameter) -> Any:
        """Returns a setting's value; raises a ValueError that names it if it is of another kind."""
        value = self.values[name]
        try:
            return field.parsed(value)
        except ValueError as error:
            raise ValueError(f"{self.naming(name, value)}: {error}.") from error


@dataclasses.dataclass(frozen=True)
class RunConfig:
    """All settings of a run, in four sections.

    Attributes:
      options: Of the chosen data set, partition, model and methods, those that were set, by name.
      origins: Where each value came from, where it is no default: 'flag', a file, a data set.
    """

    data: Data
    method: Method
    training: Training
    run: Run
    options: Mapping[str, Mapping[str, Any]]
    origins: Mapping[str, str]

    @classmethod
    def of(cls, **settings: Any) -> "RunConfig":
        """Makes a config from settings by name, such as `dataset="digits"`.

        Options have their owner's name: `waffle={"posterior_rate": 10}`.

        Raises:
          ValueError: If a setting does not exist, has a wrong value or does not fit the others.
        """
        return resolve([Layer("setting", flat(settings))])

    def values(self, method: str | None = None) -> dict[str, Any]:
        """Returns all values, or those of one method's run, by name; options as 'owner.option'."""
        found: dict[str, Any] = {}
        for section in SECTIONS:
            found |= vars(getattr(self, section))
        others = {*self.method.method} - {method} if method else ()
        for owner, own in self.options.items():
            if owner not in others:
                found |= {f"{owner}.{name}": value for name, value in own.items()}
        return found | ({"method": [method]} if method else {})

    @property
    def partition_seed(self) -> int:
        """The seed of who holds which examples."""
        return self.run.seed if self.data.partition_seed is None else self.data.partition_seed

    @property
    def model_seed(self) -> int:
        """The seed of the initial weights."""
        return self.run.seed if self.method.model_seed is None else self.method.model_seed

    def given_to(self, owner: str) -> Mapping[str, Any]:
        """Returns the options that were set for a data set, partition, model or method."""
        return self.options.get(owner, {})

    def defining(self, method: str) -> dict[str, Any]:
        """Returns what defines the run of one method, as JSON values."""
        values = self.values(method).items()
        found = {name: value for name, value in values if name not in NOT_OF_THE_RUN}
        return json.loads(json.dumps(found | {"method": method}))

    def flagfile(self, method: str) -> str:
        """Returns the text of a flagfile that makes one method's run again."""
        lines = []
        for name, value in self.values(method).items():
            if name == "num_clients" and self.data.partition == "groups":
                value = value or 0  # The default may be a number.
            if isinstance(value, bool):
                lines.append(f"--{'' if value else 'no'}{name}\n")
            elif value is not None:
                lines.append(f"--{name}={kinds.text(value)}\n")
        return "".join(lines)


def flat(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Returns settings by name, with options as 'owner.option' that are nested in their owner.

    Plugins among the settings are loaded.
    """
    found = dict(settings)
    if given := found.get("plugin"):  # What it registers may have options here.
        plugins.load(kinds.parse(Sequence[str], given))
    for owner in [n for n, v in found.items() if isinstance(v, Mapping) and options.is_owner(n)]:
        found |= {f"{owner}.{option}": value for option, value in found.pop(owner).items()}
    return found


def resolve(layers: Sequence[Layer]) -> RunConfig:
    """Merges settings from several sources, of which later ones win; errors as `RunConfig.of`."""
    given: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for layer in layers:
        for name in sorted(set(layer.values) & set(FIELDS)):
            given[name] = layer.parsed(name, FIELDS[name])
            origins[name] = layer.origin
    suited = _suited(given)
    origins = dict.fromkeys(set(suited.values) & set(FIELDS), suited.origin) | origins
    values = {name: suited.values.get(name, f.default) for name, f in FIELDS.items()} | given
    if values["local_steps"] is not None:
        if given.get("local_epochs") is not None:
            raise ValueError("Give either --local_epochs or --local_steps, not both.")
        values["local_epochs"] = None
    chosen = options.chosen(values, FIELDS)
    found: dict[str, dict[str, Any]] = {owner: {} for owner in chosen}
    for layer in (suited, *layers):
        # Of one source, what is said for one owner counts more than what is said for all.
        for name in sorted(set(layer.values) - set(FIELDS), key=lambda name: "." in name):
            for owner, option in options.find(name, chosen, FIELDS, layer.naming(name)):
                found[owner][option.name] = layer.parsed(name, option)
                origins[f"{owner}.{option.name}"] = layer.origin
    _check(values)
    values["num_clients"] = values["num_clients"] or None  # 0: each group a client.
    sections = {
        key: section(**{field.name: values[field.name] for field in dataclasses.fields(section)})
        for key, section in SECTIONS.items()
    }
    found = {owner: own for owner, own in found.items() if own}
    return RunConfig(**sections, options=found, origins=origins)


def _suited(given: Mapping[str, Any]) -> Layer:
    """What suits the data set, as far as it fits the partition, which may be another one."""
    dataset = given.get("dataset", FIELDS["dataset"].default)
    suited = DEFAULTS.get(dataset, {})
    own = suited.get("partition", FIELDS["partition"].default)
    partition = given.get("partition", own)
    found = {n: v for n, v in suited.items() if n in FIELDS or n.partition(".")[0] == partition}
    if partition != own:  # One of another kind has a number of clients even if this one has none.
        number = suited.get("num_clients") or FIELDS["num_clients"].default
        found["num_clients"] = None if partition == "file" else number
    if given.get("client_optimizer", "sgd") != "sgd":
        found.pop("client_momentum", None)
    return Layer(f"suits {dataset}", found)


def _check(values: Mapping[str, Any]) -> None:
    """Refuses settings that contradict each other."""
    methods = values["method"]
    if not methods or len(set(methods)) < len(methods):
        raise ValueError(f"--method needs one or more different methods, found {list(methods)}.")
    for owner, belonging in _BELONGING.items():
        other, _, needed = owner.partition("=")
        now = values[other]
        given = [name for name in belonging if values[name] != FIELDS[name].default]
        if given and needed and now != needed:
            raise ValueError(f"--{given[0]} belongs to --{owner}; found {now}.")
        if given and now is None:
            raise ValueError(f"--{given[0]} belongs to --{owner}: give that too.")
    if values["num_clients"] == 0 and values["partition"] != "groups":
        raise ValueError(f"--num_clients=0 needs --partition=groups; found {values['partition']}.")
    saved = values["save_initial_weights"]
    if saved is not None and not saved.endswith(".npz"):
        raise ValueError(f"--save_initial_weights={saved}: expected a file that ends with .npz.")
    if saved is not None and values["start_from"] is not None:
        raise ValueError("--save_initial_weights: those of --start_from are in a file already.")
    if values["dropout_samples"] is not None and values["acquisition"] == "random":
        raise ValueError("--dropout_samples has no meaning for --acquisition=random.")
    if values["class_weights"] is not None and values["loss"] != "cross_entropy":
        raise ValueError(f"--class_weights weigh the cross entropy; found --loss={values['loss']}.")
    if values["ensemble_selection"] == "test" and values["selection_examples"]:
        raise ValueError("Give one of --ensemble_selection=test and --selection_examples.")
    by_validation = values["goal_accuracy"] and values["goal_selection"] == "validation"
    if by_validation and not values["validation_fraction"]:
        raise ValueError("--goal_accuracy needs --validation_fraction, or --goal_selection=test.")
    if values["aggregator"] == "dp":
        for name in ("noise_multiplier", "update_clip_norm"):
            if values[name] is None:
                raise ValueError(f"--aggregator=dp needs --{name} (1, say).")
        if values["goal_accuracy"] is not None:
            raise ValueError(
                "--aggregator=dp promises nothing with --goal_accuracy: that training stops would "
                "say something of clients' examples without noise."
            )
