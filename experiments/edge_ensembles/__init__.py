"""Figures of Qian et al. (2019), "Towards Federated Learning": ensembles of edge devices."""

TITLE = "AveFL, OptFL and MixFL (Qian et al. 2019)"
# In the order in which the page shows them.
MODULES = (
    "figure3", "sequential", "batch_normalization", "figure5", "figure6", "figure7", "figure8",
    "figure9", "figure10", "figure11", "figure12",
)  # fmt: skip
