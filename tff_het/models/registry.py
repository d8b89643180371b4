"""All networks by name."""

from typing import TYPE_CHECKING

from tff_het.registry import Registry

if TYPE_CHECKING:
    from tff_het.models.networks import Network

NETWORKS: Registry["Network"] = Registry(
    "model",
    {
        "mlp": "tff_het.models.networks:mlp_200",
        "mlp_two_layers": "tff_het.models.networks:mlp_64_64",
        "mlp_two_layers_128": "tff_het.models.networks:mlp_128_128",
        "mlp_lg": "tff_het.models.networks:mlp_lg",
        "mlp_fair": "tff_het.models.networks:mlp_fair",
        "digits_cnn": "tff_het.models.networks:digits_cnn",
        "small_cnn": "tff_het.models.networks:small_cnn",
        "lenet5": "tff_het.models.networks:lenet5",
        "cnn_16_32": "tff_het.models.networks:cnn_16_32",
        "cnn_16_16": "tff_het.models.networks:cnn_16_16",
        "cnn_pfllib": "tff_het.models.networks:cnn_pfllib",
        "lenet5_84": "tff_het.models.networks:lenet5_84",
        "logistic": "tff_het.models.networks:logistic",
        "cnn_edge": "tff_het.models.networks:cnn_edge",
        "cnn_edge_bn": "tff_het.models.networks:cnn_edge_bn",
        "cnn_edge_small": "tff_het.models.networks:cnn_edge_small",
        "cnn_edge_small_bn": "tff_het.models.networks:cnn_edge_small_bn",
        "cnn_edge_digits": "tff_het.models.networks:cnn_edge_digits",
        "cnn_edge_digits_bn": "tff_het.models.networks:cnn_edge_digits_bn",
        "femnist_cnn": "tff_het.models.networks:femnist_cnn",
        "hdafl_small": "tff_het.models.networks:hdafl_small",
        "traffic_cnn": "tff_het.models.networks:traffic_cnn",
        "vqa_lstm": "tff_het.models.networks:vqa_lstm",
        "vqa_question_lstm": "tff_het.models.networks:vqa_question_lstm",
        "vqa_image": "tff_het.models.networks:vqa_image",
        "vqa_lstm_wide": "tff_het.models.networks:vqa_lstm_wide",
    },
)
