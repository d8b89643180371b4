"""Tables and figures of Rieger et al. (2020), client adaptation with gated units (CGAU)."""

TITLE = "CGAU (Rieger et al. 2020)"
# In the order in which the page shows them.
MODULES = ("figure2a", "figure2b", "table1", "figure3")
