"""Heterogeneous Data-Aware Federated Learning (Yang, Beliard and Rossi 2020): HDAFL."""

TITLE = "HDAFL (Yang et al. 2020)"
# In the order in which the page shows them.
MODULES = (
    "table2", "figure1", "figure2", "table3", "full_length", "disjoint", "figure3", "table4",
    "table5",
)  # fmt: skip
