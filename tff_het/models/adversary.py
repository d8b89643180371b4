"""Fair representations: an adversary guesses protected attributes, the network hides them.

P. P. Liang, T. Liu, L. Ziyin, N. B. Allen, R. P. Auerbach, D. Brent, R. Salakhutdinov, L.-P.
Morency: Think Locally, Act Globally: Federated Learning with Local and Global Representations
(2019), §2.3 and §6.2, after G. Louppe, M. Kagan, K. Cranmer: Learning to Pivot with Adversarial
Networks (2017).

| paper                        | here                                                             |
|------------------------------|------------------------------------------------------------------|
| p, the protected attributes  | columns of the examples, 0 or 1 each                             |
| H, the representation        | output `representation`: the activations of one layer            |
| the adversarial model        | `opponent`: fully connected layers, the output `adversary`       |
| its loss                     | the mean over attributes of their cross entropies                |
| lambda_k, eq. 24 and 25      | `weights`: the network minimises its loss - sum_k lambda_k BCE_k |

The alternation of eq. 21 to 23 is one step each on every batch, the adversary first. Whether the
representation is local, the adversary is what the method makes of it: where anything is local it is
the client's own, in federated averaging it is global. lambda_k does not weigh the adversary's own
loss, so its steps are the same whatever the penalty is, and it learns with a lambda of 0 too.
"""

import dataclasses
import math
from collections.abc import Sequence

import tensorflow as tf

from tff_het.backend.names import keras
from tff_het.models.architectures import Architecture
from tff_het.models.layers import Dropout, Layers
from tff_het.models.model import Batch, Outputs

REPRESENTATION, ADVERSARY = "representation", "adversary"  # Outputs.
_OUTPUT_LAYER = "adversary_output"


def attach(
    architecture: Architecture,
    attributes: Sequence[str],
    weights: Sequence[float],
    *,
    layer: str | None = None,
    units: Sequence[int] = (32, 32, 32),
    dropout: float = 0.0,
) -> Architecture:
    """Returns the architecture with an adversary on one of its layers.

    Its model has two further outputs: `representation`, float32 [b, ...], and `adversary`, float32
    [b, attributes], the logits that the attributes are 1. Reported beside the rest are the
    adversary's loss and that of the predictions alone.

    Args:
      architecture: The network, among whose examples' columns the attributes are.
      attributes: Names of the protected columns, which hold 0 or 1.
      weights: lambda_k >= 0, one for each attribute.
      layer: The layer whose activations are the representation; the last hidden one by default.
      units: Widths of the adversary's hidden layers, with ReLU.
      dropout: Of its hidden layers' activations.

    Raises:
      ValueError: If there are no attributes or they are no columns of the examples, there is not
        a weight >= 0 for each, the layer does not exist, or there is an adversary already.
    """
    attributes = tuple(attributes)
    columns = [name for name in architecture.example_spec if name not in ("x", "y")]
    if not attributes or len(set(attributes)) < len(attributes) or set(attributes) - set(columns):
        raise ValueError(
            "Protected attributes are different ones of the examples' columns beside x and y "
            f"({', '.join(columns) or 'there are none'}); found {', '.join(attributes) or 'none'}."
        )
    if len(weights) != len(attributes) or not all(0 <= w < math.inf for w in weights):
        raise ValueError(
            "An adversary needs a weight of 0 or more for each protected attribute "
            f"({', '.join(attributes)}); found {', '.join(map(str, weights)) or 'none'}."
        )
    if layer is not None and layer not in architecture.layers[:-1]:
        raise ValueError(
            f"No hidden layer is called {layer!r}; the model has: "
            f"{', '.join(architecture.layers[:-1])}."
        )
    if architecture.opponent:
        raise ValueError(f"Model {architecture.name!r} has an adversary already.")
    hidden_layers = tuple(f"adversary_{index + 1}" for index in range(len(units)))

    def build(kind: Layers) -> keras.Model:
        base = architecture.build(kind)
        outputs = dict(base.output)
        representation = outputs["hidden"] if layer is None else base.get_layer(layer).output
        x = keras.layers.Flatten()(representation)
        for name, width in zip(hidden_layers, units, strict=True):
            x = keras.layers.Dense(width, activation="relu", name=name)(x)
            x = Dropout(dropout)(x) if dropout else x
        outputs[REPRESENTATION] = representation
        outputs[ADVERSARY] = keras.layers.Dense(len(attributes), name=_OUTPUT_LAYER)(x)
        return keras.Model(base.inputs, outputs, name=base.name)

    def cross_entropies(batch: Batch, outputs: Outputs) -> tf.Tensor:
        truth = tf.stack([tf.cast(batch[name], tf.float32) for name in attributes], axis=-1)
        return tf.nn.sigmoid_cross_entropy_with_logits(truth, outputs[ADVERSARY])  # [b, attributes]

    def loss(batch: Batch, outputs: Outputs) -> tf.Tensor:
        hidden = tf.linalg.matvec(cross_entropies(batch, outputs), list(map(float, weights)))
        return architecture.loss(batch, outputs) - hidden

    def adversary_loss(batch: Batch, outputs: Outputs) -> tf.Tensor:
        return tf.reduce_mean(cross_entropies(batch, outputs), axis=-1)

    layers = (*hidden_layers, _OUTPUT_LAYER)
    reported = {"prediction_loss": architecture.loss, "adversary_loss": adversary_loss}
    return dataclasses.replace(
        architecture,
        build=build,
        loss=loss,
        metrics={**architecture.metrics, **reported},
        auxiliary=(*architecture.auxiliary, *layers),
        opponent=layers,
        opponent_loss=adversary_loss,
    )
