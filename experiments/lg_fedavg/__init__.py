"""Think Locally, Act Globally (Liang et al. 2019): LG-FedAvg."""
