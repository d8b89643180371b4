"""Boards: methods side by side, as other suites print them and on one fair protocol."""

TITLE = "Boards: personalised federated learning on one protocol"
MODULES = ("niid_bench", "p_fed_me")
