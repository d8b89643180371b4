"""What suits each data set where no flag says otherwise."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Defaults:
    """Flag values for one data set; the names are those of the flags."""

    partition: str = "disjoint_classes"
    num_clients: int | None = 5
    group_column: str | None = None
    model: str = "small_cnn"
    rounds: int = 15
    local_epochs: int = 1
    batch_size: int = 32
    client_learning_rate: float = 0.05
    client_momentum: float = 0.0


# Batch size, learning rate and momentum of Liang et al. (2019), Table 7.
_QUESTIONS = Defaults(
    partition="dirichlet",
    num_clients=50,
    model="vqa_lstm",
    rounds=100,
    batch_size=100,
    client_learning_rate=0.01,
    client_momentum=0.9,
)

DEFAULTS: dict[str, Defaults] = {
    "digits": Defaults(model="digits_cnn", rounds=20, batch_size=10, client_learning_rate=0.1),
    "mnist": Defaults(),
    "fashion_mnist": Defaults(),
    "cifar10": Defaults(model="lenet5", rounds=50),
    "adult": Defaults(partition="iid", model="mlp", num_clients=10),
    "femnist": Defaults(partition="groups", num_clients=100, model="femnist_cnn", rounds=400),
    "omniglot": Defaults(partition="groups", num_clients=None, rounds=50, batch_size=10),
    "traffic": Defaults(
        partition="groups",
        num_clients=None,
        group_column="network",
        model="traffic_cnn",
        rounds=20,
        client_learning_rate=0.1,
    ),
    "embedded": Defaults(partition="iid", model="mlp", num_clients=10),
    "fsd_cough": Defaults(partition="clusters", model="mlp_two_layers", num_clients=10),
    "cifar10_embeddings": Defaults(
        partition="clusters", model="mlp_two_layers_128", num_clients=10
    ),
    "digits_vqa": Defaults(
        partition="dirichlet",
        model="vqa_lstm",
        rounds=30,
        batch_size=10,
        client_learning_rate=0.1,
    ),
    "easy_vqa": _QUESTIONS,
    "vqa": dataclasses.replace(_QUESTIONS, model="vqa_lstm_wide"),
    "npz": Defaults(partition="iid", model="mlp", num_clients=10),
}
