"""The tables and figures of WAFFLe (2020)."""

TITLE = "WAFFLe (Hao et al. 2020)"
# In the order in which the page shows them.
MODULES = (
    "table1", "table2", "full_length", "q_search", "rate_search", "cost", "table3", "figure3",
    "figure4", "figure6", "table4", "table5", "figure7", "table6", "table7",
    "differences", "baselines",
)  # fmt: skip
