"""Flows: which classes are kept, and that no test flow is a training flow, here and in the file."""

import numpy as np
import pytest

from tff_het import datasets
from tff_het.datasets import traffic


def make_flows(num_classes=38, seed=0):
    """Class k has 40 + k flows, many of them repeated, across classes and networks too."""
    rng = np.random.default_rng(seed)
    names = np.array([f"app_{k:02}" for k in rng.permutation(num_classes)])
    label = rng.permutation(np.repeat(np.arange(num_classes), 40 + np.arange(num_classes)))
    vectors = rng.integers(-1500, 1500, (len(label) // 2, 10))
    return {
        "packet_lengths": vectors[rng.integers(0, len(vectors), len(label))].astype(np.int16),
        "label": label.astype(np.int16),
        "network": rng.integers(0, 2, len(label)).astype(np.int8),
        "label_names": names,
    }


def save(tmp_path, **arrays):
    (tmp_path / "traffic").mkdir(exist_ok=True)
    np.savez(tmp_path / "traffic" / "flows_first10.npz", **arrays)
    return tmp_path


def save_csv(tmp_path, lines):
    (tmp_path / "traffic").mkdir(exist_ok=True)
    path = tmp_path / "traffic" / "flows_first10.csv"
    path.write_text("\n".join(lines) + "\n")
    return tmp_path


def csv_lines(arrays):
    yield ",".join([*(f"p{i}" for i in range(10)), "label", "network"])
    names = arrays["label_names"][arrays["label"]]
    for lengths, name, network in zip(
        arrays["packet_lengths"], names, arrays["network"], strict=True
    ):
        yield ",".join(map(str, [*lengths, name, network]))


def vectors(examples) -> set[bytes]:
    return {row.tobytes() for row in examples["x"]}


def test_keeps_the_most_frequent_classes_under_their_names(tmp_path):
    arrays = make_flows()
    data = datasets.load("traffic", save(tmp_path, **arrays))
    # The three least frequent are labels 0, 1 and 2.
    assert data.class_names == tuple(sorted(arrays["label_names"][3:]))
    flows = {
        key: np.concatenate([data.train[key], data.test[key]]) for key in ("x", "y", "network")
    }
    assert [column.dtype for column in flows.values()] == [np.int16, np.int32, np.int32]
    found = zip(
        flows["x"].tolist(),
        [data.class_names[label] for label in flows["y"]],
        flows["network"].tolist(),
        strict=True,
    )
    kept = arrays["label"] >= 3
    expected = zip(
        arrays["packet_lengths"][kept].tolist(),
        arrays["label_names"][arrays["label"][kept]].tolist(),
        arrays["network"][kept].tolist(),
        strict=True,
    )
    assert sorted(found) == sorted(expected)


def test_no_vector_is_on_both_sides(tmp_path):
    data = datasets.load("traffic", save(tmp_path, **make_flows()))
    train, test = vectors(data.train), vectors(data.test)
    assert not train & test
    assert len(test) / (len(train) + len(test)) == pytest.approx(0.2, abs=0.001)
    # Otherwise it would show nothing: repetitions with another label and in the other network.
    for column in ("y", "network"):
        pairs = zip(data.train["x"], data.train[column], strict=True)
        keys = {(row.tobytes(), value) for row, value in pairs}
        assert len(keys) > len(train)


def test_order_of_the_file_is_kept_and_the_split_is_fixed(tmp_path):
    arrays = make_flows(5)
    arrays["network"] = np.arange(len(arrays["label"]))
    data = datasets.load("traffic", save(tmp_path, **arrays))
    for examples in (data.train, data.test):
        assert (np.diff(examples["network"]) > 0).all()
    assert data.num_classes == 5
    assert data.fingerprint() == datasets.load("traffic", tmp_path).fingerprint()


def test_one_frequent_flow_does_not_take_its_class_out_of_training(tmp_path):
    arrays = make_flows(2)
    rows = np.flatnonzero(arrays["label"] == 1)[:30]
    arrays["packet_lengths"][rows] = 7
    data = datasets.load("traffic", save(tmp_path, **arrays))
    assert (data.train["x"] == 7).all(axis=1).sum() == 30


def test_csv_gives_the_same_as_npz(tmp_path):
    arrays = make_flows()
    one = datasets.load("traffic", save(tmp_path, **arrays))
    (tmp_path / "traffic" / "flows_first10.npz").unlink()
    other = datasets.load("traffic", save_csv(tmp_path, csv_lines(arrays)))
    assert other.fingerprint() == one.fingerprint() and other.source.endswith(".csv")


@pytest.mark.parametrize(
    ("changes", "parts"),
    [
        ({"packet_lengths": np.zeros((209, 10))}, ("int16", "float64")),
        ({"packet_lengths": np.zeros((209, 9), np.int16)}, ("[209, 9]",)),
        ({"packet_lengths": np.zeros((0, 10), np.int16)}, ("n > 0",)),
        ({"network": np.zeros(208, np.int8)}, ("network", "[209]", "[208]")),
        ({"label": np.zeros(210)}, ("label", "float64")),
        ({"label": np.full(210, 5, np.int16)}, ("0..4", "5..5")),
        ({"label_names": np.array(["a", "a", "b", "c", "d"])}, ("label_names", "different")),
        ({"label_names": np.arange(5)}, ("label_names", "int64")),
    ],
)
def test_broken_files_are_refused(tmp_path, changes, parts):
    arrays = {key: column[:209] for key, column in make_flows(5).items()}
    if "label" in changes:
        changes = {"label": changes["label"][:209]}
    with pytest.raises(ValueError) as error:
        datasets.load("traffic", save(tmp_path, **{**arrays, **changes}))
    for part in (*parts, "flows_first10.npz"):
        assert part in str(error.value)


@pytest.mark.parametrize(
    ("line", "replacement", "parts"),
    [
        (0, "a,b", ("header", "['a', 'b']")),
        (3, "1,2,3", ("line 4", "['1', '2', '3']")),
        (3, "1,2,3,4,5,6,7,8,9,x,app,0", ("line 4", "'x'")),
        (3, "1,2,3,4,5,6,7,8,9,40000,app,0", ("-32768..32767", "..40000")),
        (2, "\0", ("flows_first10.csv",)),
    ],
)
def test_broken_csv_is_refused_naming_the_line(tmp_path, line, replacement, parts):
    lines = list(csv_lines(make_flows(3)))
    lines[line] = replacement
    with pytest.raises(ValueError) as error:
        datasets.load("traffic", save_csv(tmp_path, lines))
    for part in (*parts, "Write <data_dir>/traffic/"):
        assert part in str(error.value)


def test_csv_without_flows_is_refused(tmp_path):
    for content in ([], list(csv_lines(make_flows(3)))[:1]):
        with pytest.raises(ValueError, match=r"flows_first10\.csv"):
            datasets.load("traffic", save_csv(tmp_path, content))


def test_real_file(data_dir):
    if not any((data_dir / "traffic" / name).is_file() for name in traffic._FILES):
        pytest.skip("TFF_HET_DATA_DIR holds no traffic/flows_first10.npz or .csv")
    data = datasets.load("traffic", data_dir)
    train, test = vectors(data.train), vectors(data.test)
    # 256,006 flows of the 35 classes hold 121,958 unique ones: by their packet lengths alone.
    assert len(data.train["y"]) + len(data.test["y"]) == 256_006
    assert len(train) + len(test) == len(train | test) == 121_958
    assert data.num_classes == 35
    share = np.bincount(data.test["y"]) / np.bincount(
        np.concatenate([data.train["y"], data.test["y"]])
    )
    np.testing.assert_allclose(share, 0.2, atol=0.05)
    # Both networks hold all classes, in train as in test.
    for examples in (data.train, data.test):
        assert len(np.unique(examples["network"] * 35 + examples["y"])) == 2 * 35
