"""What suits each data set, where nothing else is said: settings that differ from `RunConfig`'s."""

from typing import Any

_EMBEDDED = {"partition": "iid", "model": "mlp", "num_clients": 10}
_CLUSTERS = {"partition": "clusters", "num_clients": 10}
_GROUPS = {"partition": "groups", "num_clients": None}
_SMALL = {"batch_size": 10, "client_learning_rate": 0.1}
# Batch size, learning rate and momentum of Liang et al. (2019), Table 7.
_QUESTIONS = {
    **{"partition": "dirichlet", "num_clients": 50, "rounds": 100},
    **{"batch_size": 100, "client_learning_rate": 0.01, "client_momentum": 0.9},
}

DEFAULTS: dict[str, dict[str, Any]] = {
    "digits": _SMALL | {"model": "digits_cnn", "rounds": 20},
    "cifar10": {"model": "lenet5", "rounds": 50},
    "adult": _EMBEDDED,
    "femnist": _GROUPS | {"num_clients": 100, "model": "femnist_cnn", "rounds": 400},
    "omniglot": _GROUPS | {"rounds": 50, "batch_size": 10},
    "traffic": _GROUPS
    | {"groups.column": "network", "model": "traffic_cnn", "rounds": 20}
    | {"client_learning_rate": 0.1},
    "embedded": _EMBEDDED,
    "fsd_cough": _CLUSTERS | {"model": "mlp_two_layers"},
    "cifar10_embeddings": _CLUSTERS | {"model": "mlp_two_layers_128"},
    "digits_vqa": _SMALL | {"partition": "dirichlet", "model": "vqa_lstm", "rounds": 30},
    "easy_vqa": _QUESTIONS | {"model": "vqa_lstm"},
    "vqa": _QUESTIONS | {"model": "vqa_lstm_wide"},
    "npz": _EMBEDDED,
    "pfllib": _GROUPS | {"groups.column": "client", "model": "mlp"},
}
