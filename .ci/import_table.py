"""ARCHITECTURE.md's table: what each room may import.

Tests hold the sources to it (`tests/imports_test.py`), and the BUILD files' visibility follows from
it (`build_files.py`).
"""

# Room of tff_het -> rooms that it may import.
MAY_IMPORT: dict[str, set[str]] = {
    "datasets": set(),
    "partitions": {"datasets"},
    "clients": {"datasets", "partitions"},
    "models": set(),
    "learning": {"models"},
    "methods": {"learning", "models"},
    "evaluation": {"clients", "models", "learning"},
    "attacks": {"models", "learning", "evaluation"},
    "simulation": {"clients", "learning", "models", "evaluation"},
}
# These belong to no room and serve all.
SHARED = {
    "dying_with_parent",
    "kept",
    "kinds",
    "numbers",
    "quiet",
    "registry",
    "seeding",
    "writing",
}
# What `embeddings/` may import of tff_het; experiments and tests may import everything.
EMBEDDINGS_MAY_IMPORT = {"datasets"}

# Where in tff_het TensorFlow Federated may be imported.
TFF = "tensorflow_federated"
TFF_ROOMS = {"learning", "simulation"}
TFF_FILES = {
    "kept.py",
    "models/reconstruction.py",
    "datasets/femnist.py",
    "evaluation/communication.py",
}
# What `embeddings/` alone imports: an extra, but for TF-Hub.
OF_EMBEDDINGS = {"apache_beam", "soundfile", "soxr", "tensorflow_hub"}
