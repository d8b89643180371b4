"""The tables and figures of WAFFLe (2020)."""
