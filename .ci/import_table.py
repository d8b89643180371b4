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
    "attacks": {"clients", "models", "learning", "evaluation", "simulation"},
    "simulation": {"clients", "learning", "models", "evaluation"},
}
# These belong to no room and serve all. `backend` is the door to TensorFlow's moving parts.
SHARED = {
    "backend",
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

# Imported in `backend` alone.
TFF = "tensorflow_federated"
# What `embeddings/` alone imports: an extra, but for TF-Hub.
OF_EMBEDDINGS = {"apache_beam", "soundfile", "soxr", "tensorflow_hub"}
