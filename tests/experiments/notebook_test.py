"""The notebook is stored without outputs, and every cell of it runs."""

import json
import pathlib

import pytest

ROOT = pathlib.Path(__file__).parents[2]
FOLDER = ROOT / "experiments" / "notebooks"
NOTEBOOK = FOLDER / "quickstart.ipynb"


@pytest.fixture
def execute(tmp_path, monkeypatch):
    """Runs a notebook in an empty folder; its cells then have outputs."""
    reason = "is not installed: it is in the group test"
    nbformat = pytest.importorskip("nbformat", reason=f"nbformat {reason}")
    nbclient = pytest.importorskip("nbclient", reason=f"nbclient {reason}")
    pytest.importorskip("ipykernel", reason=f"ipykernel {reason}")
    # Kernels are looked for, and installed, here.
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "jupyter"))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))

    def run(cells=None):
        if cells is None:
            notebook = nbformat.read(NOTEBOOK, as_version=4)
        else:
            notebook = nbformat.v4.new_notebook(cells=list(map(nbformat.v4.new_code_cell, cells)))
        nbformat.validate(notebook)
        place = {"metadata": {"path": str(tmp_path)}}
        nbclient.NotebookClient(
            notebook, timeout=600, kernel_name="python3", resources=place
        ).execute()
        return [cell.outputs for cell in notebook.cells if cell.cell_type == "code"]

    return run


def test_it_is_stored_without_outputs():
    cells = [c for c in json.loads(NOTEBOOK.read_text())["cells"] if c["cell_type"] == "code"]
    assert cells
    for cell in cells:
        assert cell["outputs"] == [] and cell["execution_count"] is None and cell["metadata"] == {}


@pytest.mark.slow
def test_every_cell_runs(execute):
    outputs = [output for cell in execute() for output in cell]
    shown = [kind for output in outputs for kind in output.get("data", {})]
    assert shown.count("image/png") == 3  # Classes of the clients, curves, accuracies.
    assert shown.count("text/markdown") == 1  # A table of verdicts.
    assert shown.count("text/html") == 1  # The paper's figure, as wide as the page at most.


@pytest.mark.slow
def test_further_cells_run_in_the_other_python(execute):
    """As on Colab, where the notebook's own Python is too new."""
    first = f"""
import os, sys
print(os.getpid())
sys.path.insert(0, {str(FOLDER)!r})
import other_python
other_python.take_over(sys.executable)
"""
    second = "import os\nanswer = 6 * 7\nprint(os.getpid())"
    third = "answer"
    ours, theirs, shown = execute([first, second, third])
    assert ours[0].text != theirs[0].text
    assert shown[0].data["text/plain"] == "42"
    with pytest.raises(Exception, match="This cell failed in the other Python"):
        execute([first, "1 / 0"])
