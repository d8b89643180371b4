"""Fetching what a client has in mapped files changes nothing but what is in memory."""

import numpy as np
import pytest

from tff_het.clients import Client, mapped


@pytest.mark.parametrize("mode", ["r", "r+", "c"])
def test_mapped_examples_are_as_before(tmp_path, mode):
    values = np.arange(9 * 1000 * 3, dtype=np.float32).reshape(9, 1000, 3)
    np.save(tmp_path / "x.npy", values)
    x = np.load(tmp_path / "x.npy", mmap_mode=mode)
    y = np.zeros(1000, np.int32)
    for k in range(9):  # 12,000 bytes each: they begin anywhere in a page.
        client = Client(
            str(k), {"x": x[k], "y": y}, {"x": x[k, :0], "y": y[:0]}, {"x": x[k, :2], "y": y[:2]}
        )
        for split in (client.train, client.validation, client.test):
            mapped.fetch(split)
        np.testing.assert_array_equal(client.train["x"], values[k])


def test_part_of_a_file_from_an_offset(tmp_path):
    np.arange(5000, dtype=np.int32).tofile(tmp_path / "y")
    y = np.memmap(tmp_path / "y", np.int32, "r", offset=4 * 2500)
    mapped.fetch({"y": y[1000:]})
    np.testing.assert_array_equal(y[1000:], np.arange(3500, 5000))


def test_arrays_in_memory_are_left_alone():
    columns = {"x": np.ones((4, 2)), "y": np.arange(4)[1:], "none": np.zeros((0, 3))}
    mapped.fetch(columns)
    np.testing.assert_array_equal(columns["x"], 1)
