"""Think Locally, Act Globally (Liang et al. 2019): LG-FedAvg."""

TITLE = "LG-FedAvg (Liang et al. 2019)"
# In the order in which the page shows them.
MODULES = ("table1", "mnist_iid", "table2", "table3", "table4")
