"""A result's key changes with the code that it comes from, and with no other."""

import json
import pathlib
import subprocess
import sys

import pytest

from experiments.hdafl.figure1 import two_clients
from experiments.run import plugins
from experiments.study import identity, timing
from experiments.study.experiment import Call, Training
from experiments.waffle.attacking import infer_membership

WORKS = {
    **{
        method: Training({"dataset": "digits", "method": method})
        for method in ("fed_avg", "hdafl", "waffle", "local_only")
    },
    "iid": Training({"dataset": "digits", "method": "fed_avg", "partition": "iid"}),
    "counts": Call(two_clients, {"dataset": "digits", "partition": {"name": "iid"}}, ("digits",)),
    "attack": Call(infer_membership, {"dataset": "digits", "method": "waffle"}, ("digits",)),
    "times": Call(timing.round_times, {"flags": {"dataset": "digits"}}, ("digits",)),
}
TRAINED = {"fed_avg", "hdafl", "waffle", "local_only", "iid", "attack", "times"}


def keys() -> dict[str, str]:
    return {name: identity.key(work, ["data"]) for name, work in WORKS.items()}


@pytest.fixture(scope="module")
def before() -> dict[str, str]:
    return keys()


@pytest.fixture
def voided_by(before, monkeypatch, tmp_path):
    """Says whose keys change with one file's text."""

    def voided_by(module: str, old: str, new: str) -> set[str]:
        path = identity._path(module)
        text = path.read_text()
        assert old in text
        edited = tmp_path / "edited.py"
        edited.write_text(text.replace(old, new, 1))
        found = identity._path
        with monkeypatch.context() as patch:
            patch.setattr(identity, "_path", lambda m: edited if m == module else found(m))
            identity.files.cache_clear()  # What is kept of each file goes by its path.
            after = keys()
        identity.files.cache_clear()
        return {name for name in before if before[name] != after[name]}

    return voided_by


@pytest.mark.parametrize(
    ("module", "old", "new", "voided"),
    [
        (
            "tff_het.methods.registry", '        "fed_avg": ',
            '        "mine": "tff_het.methods.mine:build",\n        "fed_avg": ', set(),
        ),
        ("tff_het.methods.hdafl", '"""', '"""Other words. ', set()),
        ("tff_het.methods.hdafl", "= None,", "= (),", {"hdafl"}),
        ("tff_het.models.factorized", '"posterior_c"', '"posterior_e"', {"waffle", "attack"}),
        ("tff_het.learning.client_work", "(NamedTuple)", "(NamedTuple, object)", TRAINED),
        ("tff_het.partitions.iid", "rng.", "rng .integers or rng.", {"iid", "counts"}),
        ("tff_het.datasets.digits", "return_X_y", "return_x_y", set(WORKS)),
        ("tff_het.attacks.membership", "import numpy as np", "import numpy", {"attack"}),
        ("experiments.hdafl.figure1", '.npz", 200', '.npz", 20', {"counts"}),
        ("experiments.hdafl.figure1", "heat maps", "maps", set()),
        ("experiments.run.config", "rounds: Whole = 15", "rounds: Whole = 16", set()),
        ("experiments.study.page", "def", "async def", set()),
        ("experiments.study.timing", "_WARM_UP = 2", "_WARM_UP = 3", {"times"}),
    ],
    ids=lambda value: value if isinstance(value, str) and "." in value else "",
)  # fmt: skip
def test_an_edit_voids_what_uses_it_and_nothing_else(voided_by, module, old, new, voided):
    assert voided_by(module, old, new) == voided


def test_settings_count_with_their_defaults():
    given = {"dataset": "digits", "method": "fed_avg"}
    one, same = Training(given), Training({**given, "batch_size": "10"})
    assert identity.key(one, []) == identity.key(same, [])
    assert identity.key(one, []) != identity.key(Training({**given, "batch_size": "9"}), [])


@pytest.mark.parametrize("name", ["mine.py", "beside.py", "split.npz"])
def test_files_of_a_plugin_and_a_split_count(tmp_path, name):
    sys.modules.pop("mine", None)
    sys.modules.pop("beside", None)
    for file, text in {"mine.py": "import beside", "beside.py": "A = 1", "split.npz": "a"}.items():
        (tmp_path / file).write_text(text)
    given = {"dataset": "digits", "method": "fed_avg", "plugin": str(tmp_path / "mine.py")}
    given |= {"partition": "file", "file.path": str(tmp_path / "split.npz")}
    before = identity.key(Training(given), [])
    assert identity.key(Training(given), []) == before
    (tmp_path / name).write_text("import beside, json")
    for kept in (identity.files, identity._imported, plugins.meaning, plugins.imports):
        kept.cache_clear()  # As in another program.
    assert identity.key(Training(given), []) != before


def test_the_code_of_a_calls_plugin_is_in_its_key_whatever_was_loaded():
    flags = {"partition": "perm_fl_classes", "plugin": "experiments.boards.theirs"}
    assert "experiments.boards.theirs" not in sys.modules
    found = identity.code_of(Call(two_clients, {"flags": flags}, ("digits",)))
    assert "experiments.boards.theirs" in found


PROGRAM = """
import json, sys
from experiments.run import RunConfig, run
flags = json.loads(sys.argv[1])
with run(RunConfig.of(**flags, rounds=1)):
    ours = ("tff_het", "experiments")
    print(json.dumps([name for name in sys.modules if name.partition(".")[0] in ours]))
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "flags",
    [
        {"method": "waffle", "factors": "dense_1=4", "model": "mlp", "partition": "iid"},
        {"method": "fed_avg", "acquisition": "max_entropy", "acquisition_size": "5",
         "model": "cnn_edge_digits", "partition": "dirichlet"},
        {"method": "local_only", "new_test": "true", "aggregator": "mean"},
    ],
)  # fmt: skip
def test_all_code_that_a_run_imports_is_in_its_key(flags):
    command = [sys.executable, "-c", PROGRAM, json.dumps(flags)]
    run = subprocess.run(
        command, capture_output=True, text=True, timeout=200, check=True,
        cwd=pathlib.Path(__file__).parents[3],
    )  # fmt: skip
    imported = {name for name in json.loads(run.stdout) if not identity._is_apart(name)}
    keyed = identity.code_of(Training({"dataset": "digits", **flags}))
    assert "experiments.run.processes" in imported
    assert imported <= set(keyed)
