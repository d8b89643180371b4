"""Tables and figures of Rieger et al. (2020), client adaptation with gated units (CGAU)."""
