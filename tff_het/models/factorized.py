"""Layers whose weights are a choice of rank-1 factors from a shared dictionary (WAFFLe).

WAFFLe: Weight Anonymized Factorization for Federated Learning (2020), eq. (2) to (13):

    W = W_a diag(r * b) W_b,    v_k ~ Beta(alpha, 1),    b_k ~ Bernoulli(v_1 * ... * v_k)

Everyone shares the dictionary (W_a, W_b) and the strengths r; which factors a client uses, b, has a
posterior of its own: b_k ~ Bernoulli(pi_k), v_k ~ Kumaraswamy(c_k, d_k). Training draws b from the
relaxed Bernoulli (Maddison et al. 2017) once a batch and adds KL(posterior || prior) to the loss;
predictions take b = pi, and b = 1 at a client that has never trained.
"""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tff_het.backend.names import keras
from tff_het.models import calling
from tff_het.models.layers import POSTERIOR_LOGITS, Layers, Random

_POSTERIOR = (POSTERIOR_LOGITS, "posterior_c", "posterior_d")
# Of factors that a client got after it had trained: pi = 0.018.
_IDLE = -4.0
# Numbers between 0 and 1 are kept this far from both, where logarithms end.
_EDGE = 1e-6


def is_posterior(path: str) -> bool:
    """Whether the variable with this path is part of a client's posterior."""
    return path.split("/")[-1] in _POSTERIOR


def kl_posterior(
    logits: tf.Tensor, c: tf.Tensor, d: tf.Tensor, log_u: tf.Tensor, alpha: float
) -> tf.Tensor:
    """KL(posterior || prior), eq. (13), [] in nats, with the draw of v by log u; all are [F].

    That of v is exact (Nalisnick and Smyth 2017, eq. (12); its series has the factor 1 - 1 here).
    The gradient is written out: TensorFlow's takes twice as many operations, in each training step.
    """

    @tf.custom_gradient
    def kl(logits: tf.Tensor, c: tf.Tensor, d: tf.Tensor):
        # v = (1 - u^(1/d))^(1/c). (Kept from 0 and 1 by adding, as clipping costs more.)
        scaled = log_u / d
        power = (1.0 - _EDGE) * tf.math.expm1(scaled)
        log_v = tf.math.log(_EDGE - power) / c
        log_p = tf.cumsum(log_v) - _EDGE
        q, minus_rest = tf.sigmoid(logits), tf.math.expm1(log_p)
        log_rest = tf.math.log(-minus_rest)  # log(1 - p).
        log_odds = logits - log_p + log_rest
        of_b = q * log_odds - log_rest - tf.math.softplus(logits)
        expected_log = tf.math.digamma(d + 1.0) + np.euler_gamma  # -c E[log v], v ~ q.
        ratio = alpha / c
        of_v = (ratio - 1.0) * expected_log + tf.math.log(c * d / alpha) + 1.0 / d - 1.0

        def gradient(upstream: tf.Tensor):
            of_logits = q * (1.0 - q) * log_odds
            minus_log_v = tf.cumsum((1.0 - q) / minus_rest + 1.0, reverse=True)
            of_c = (minus_log_v * log_v + 1.0 - ratio * expected_log) / c
            minus_d = minus_log_v * scaled * (power + (1.0 - _EDGE)) / ((_EDGE - power) * c)
            of_d = (1.0 - 1.0 / d - minus_d) / d
            of_d += (ratio - 1.0) * tf.math.polygamma(1.0, d + 1.0)
            return upstream * of_logits, upstream * of_c, upstream * of_d

        return tf.reduce_sum(of_b + of_v), gradient

    return kl(logits, c, d)


def grown(
    values: Mapping[str, np.ndarray], fresh: Mapping[str, np.ndarray], *, trained: bool
) -> dict[str, np.ndarray]:
    """Values for a model with more factors, which predicts what the smaller one does (section 2.2).

    New factors come behind the old ones. Their rows of W_b are 0, so that nobody's predictions
    change; a client that has trained hardly uses them, one that joins starts from the prior.

    Args:
      values: Variables of the smaller model by path, such as `dense_1/left`.
      fresh: Initial variables of the larger one.
      trained: Whether the posterior is that of a client that has trained.

    Raises:
      ValueError: If the models differ in anything but the numbers of factors, or one shrinks.
    """
    if set(values) != set(fresh):
        raise ValueError(
            "A dictionary grows within the same layers; only one of the two models has "
            f"{', '.join(sorted(set(values) ^ set(fresh)))}."
        )
    return {path: _grown(path, values[path], fresh[path], trained) for path in fresh}


def _grown(path: str, old: np.ndarray, fresh: np.ndarray, trained: bool) -> np.ndarray:
    if not trained and is_posterior(path):
        return np.array(fresh)
    if old.shape == fresh.shape:
        return np.array(old)
    name = path.split("/")[-1]
    axis = 1 if name == "left" else 0
    factors, others = old.shape[axis], np.delete(old.shape, axis)
    is_ours = is_posterior(path) or name in ("left", "right", "strength")
    if not is_ours or fresh.shape[axis] < factors or (others != np.delete(fresh.shape, axis)).any():
        raise ValueError(
            f"{path} cannot grow from {list(old.shape)} to {list(fresh.shape)}: only the number of "
            "factors may differ, and not become smaller."
        )
    new = np.array(fresh)
    new[(slice(None),) * axis + (slice(factors),)] = old
    if name in ("right", "posterior_logits"):
        new[factors:] = 0.0 if name == "right" else _IDLE
    return new


def _learning(logits: tf.Tensor, rate: float, rule: str) -> tf.Tensor:
    """The same logits, which learn by a rule of `FactorizedLayers`."""

    def gradient(upstream):
        upstream = rate * upstream
        if rule == "logits":
            return upstream
        pi = tf.sigmoid(logits)
        of_pi = upstream / tf.maximum(pi * (1.0 - pi), _EDGE)  # Also the Fisher information of pi.
        if rule == "natural":
            return of_pi
        # Plain SGD takes gradients times its negative rate (see `Descent`): this is a step of pi.
        moved = tf.clip_by_value(pi + of_pi, _EDGE, 1.0 - _EDGE)
        return tf.math.log(moved) - tf.math.log1p(-moved) - logits

    return tf.custom_gradient(lambda x: (tf.identity(x), gradient))(logits)


def _inverse_softplus(value: float) -> float:
    return value + math.log(-math.expm1(-value))


class _Factorized(Random):
    """What dense layers and convolutions have in common: factors, posterior and KL term."""

    def __init__(
        self,
        units: int,
        *,
        factors: int,
        alpha: float,
        temperature: float,
        learning: Mapping[str, Any],
        bias: bool,
        name: str,
    ):
        super().__init__(name=name)
        self._units, self._num_factors, self._has_bias = units, factors, bias
        self._alpha, self._temperature, self._learning = alpha, temperature, learning

    def _add_factors(self, fan_in: int) -> None:
        """W_a [J, F], W_b [F, M], r [F], and the posterior, which starts at the prior."""

        def vector(name: str, value) -> tf.Variable:
            initializer = keras.initializers.Constant(value)
            return self.add_weight(name, [self._num_factors], initializer=initializer)

        # E[pi_k] for k = 1 ... F, in float64.
        pi = (self._alpha / (1.0 + self._alpha)) ** np.arange(1, self._num_factors + 1)
        self.left = self.add_weight("left", [fan_in, self._num_factors])
        self.right = self.add_weight("right", [self._num_factors, self._units])
        self.strength = vector("strength", 1.0)
        self.logits = vector(POSTERIOR_LOGITS, np.log(pi / (1.0 - pi)).astype(np.float32))
        self.c = vector("posterior_c", _inverse_softplus(self._alpha))
        self.d = vector("posterior_d", _inverse_softplus(1.0))
        if self._has_bias:
            self.bias = self.add_weight("bias", [self._units], initializer="zeros")

    def _scores(self, training: bool) -> tf.Tensor:
        """lambda = r * b, float32 [F]; in training adds the KL term, a share for each example."""
        client = calling.current(self.name).client
        logits = _learning(tf.convert_to_tensor(self.logits), **self._learning)
        if not training:
            never = tf.equal(client.rounds, 0)
            return self.strength * tf.where(never, tf.ones_like(logits), tf.sigmoid(logits))
        # A draw for b and one for v. (TensorFlow Probability's samplers draw u = 0 once in a while,
        # where the gradient is not a number; its RelaxedBernoulli has none at large logits.)
        u = tf.random.stateless_uniform([2, self._num_factors], self._seed(), _EDGE, 1.0 - _EDGE)
        log_u = tf.math.log(u)
        b = tf.sigmoid((logits + log_u[0] - tf.math.log1p(-u[0])) / self._temperature)
        c, d = tf.math.softplus(self.c), tf.math.softplus(self.d)
        kl = kl_posterior(logits, c, d, log_u[1], self._alpha)
        self.add_loss(kl / tf.cast(client.num_examples, tf.float32))
        return self.strength * b

    def _activated(self, outputs: tf.Tensor) -> tf.Tensor:
        return tf.nn.relu(outputs + self.bias if self._has_bias else outputs)


class FactorizedDense(_Factorized):
    """relu(((x W_a) * lambda) W_b), [b, J] -> [b, M]: the matrix itself is never formed."""

    def build(self, input_shape) -> None:
        self._add_factors(input_shape[-1])
        super().build(input_shape)

    def call(self, inputs: tf.Tensor, training: bool = False) -> tf.Tensor:
        hidden = tf.matmul(inputs, self.left) * self._scores(training)
        return self._activated(tf.matmul(hidden, self.right))


class FactorizedConv(_Factorized):
    """A convolution with ReLU whose kernel, as a matrix [size^rank * channels, M], is W.

    The paper's Appendix A. The kernel is formed, since it is used at every place of an input.
    """

    def __init__(self, units: int, window: Sequence[int], padding: str, **kwargs):
        super().__init__(units, **kwargs)
        self._window, self._padding = list(window), padding.upper()

    def build(self, input_shape) -> None:
        self._add_factors(math.prod(self._window) * input_shape[-1])
        super().build(input_shape)

    def call(self, inputs: tf.Tensor, training: bool = False) -> tf.Tensor:
        kernel = tf.matmul(self.left * self._scores(training), self.right)
        kernel = tf.reshape(kernel, [*self._window, inputs.shape[-1], self._units])
        return self._activated(tf.nn.convolution(inputs, kernel, padding=self._padding))


@dataclasses.dataclass(frozen=True)
class FactorizedLayers(Layers):
    """Replaces the layers that `factors` names by factorised ones.

    Attributes:
      factors: F of the layers that are factorised, by name; None: of all, as many as outputs.
      alpha_over_factors: alpha / F, of the prior Beta(alpha, 1).
      temperature: Of the relaxed Bernoulli.
      posterior_rate: How many times faster than everything else the logits of pi learn.
      posterior_rule: What SGD learns pi by. logits: the gradient of the logits; natural: their
        natural gradient, which is that of pi; probabilities: that of pi moves pi itself, clipped,
        for which SGD has to be plain.

    Raises:
      ValueError: If a number is not positive.
    """

    factors: Mapping[str, int] | None = None
    alpha_over_factors: float = 1.0
    temperature: float = 2 / 3
    posterior_rate: float = 1.0
    posterior_rule: str = "logits"

    def __post_init__(self):
        for name, value in (
            *((f"The number of factors of {k}", f) for k, f in (self.factors or {}).items()),
            ("alpha_over_factors", self.alpha_over_factors),
            ("temperature", self.temperature),
            ("posterior_rate", self.posterior_rate),
        ):
            if not 0 < value < math.inf:
                raise ValueError(f"{name} must be positive, found {value}.")

    def dense(self, units: int, name: str) -> keras.layers.Layer:
        if own := self._of(name, units):
            return FactorizedDense(units, **own)
        return super().dense(units, name)

    def conv(self, filters: int, size: int, name: str, padding: str = "same") -> keras.layers.Layer:
        if own := self._of(name, filters):
            return FactorizedConv(filters, [size, size], padding, **own)
        return super().conv(filters, size, name, padding)

    def conv1d(self, filters: int, size: int, name: str) -> keras.layers.Layer:
        if own := self._of(name, filters):
            return FactorizedConv(filters, [size], "valid", **own)
        return super().conv1d(filters, size, name)

    def _of(self, name: str, units: int) -> dict[str, Any]:
        """What a layer that is factorised is made of; nothing for others."""
        if self.factors is not None and name not in self.factors:
            return {}
        factors = units if self.factors is None else self.factors[name]
        return {
            "factors": factors,
            "alpha": self.alpha_over_factors * factors,
            "temperature": self.temperature,
            "learning": {"rate": self.posterior_rate, "rule": self.posterior_rule},
            "bias": self.bias,
            "name": name,
        }
