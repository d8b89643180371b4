"""Figures of Qian et al. (2019), "Towards Federated Learning": ensembles of edge devices."""
