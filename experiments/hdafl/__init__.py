"""Heterogeneous Data-Aware Federated Learning (Yang, Beliard and Rossi 2020): HDAFL."""
