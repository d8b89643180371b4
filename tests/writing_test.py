"""Files appear complete or not at all."""

import errno
import os
import socket
import subprocess
import sys

import pytest

from tff_het import writing


def test_a_file_appears_with_the_mode_of_any_file(tmp_path):
    with writing.complete(tmp_path / "a") as file:
        file.write(b"1")
        assert not (tmp_path / "a").exists()
    (tmp_path / "b").write_bytes(b"1")
    assert (tmp_path / "a").read_bytes() == b"1"
    assert (tmp_path / "a").stat().st_mode == (tmp_path / "b").stat().st_mode


def test_a_failure_leaves_the_old_file_and_names_it(tmp_path):
    (tmp_path / "a").write_bytes(b"old")

    def fail():
        with writing.complete(tmp_path / "a") as file:
            file.write(b"new")
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(OSError, match=r"No space left on device: '.*/a'"):
        fail()
    assert (tmp_path / "a").read_bytes() == b"old" and os.listdir(tmp_path) == ["a"]


def test_what_a_killed_program_left_is_cleared_away_and_nothing_else(tmp_path):
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    host = socket.gethostname()
    names = [f".a.{host}.{os.getppid()}.partial", f".a.{host}.me.partial"]
    names += [f".b.{host}.{ended.pid}.partial", f".a.elsewhere.{ended.pid}.partial"]
    for name in (*names, f".a.{host}.{ended.pid}.partial"):
        (tmp_path / name).touch()
    with writing.complete(tmp_path / "a"):
        pass
    assert sorted(os.listdir(tmp_path)) == sorted(["a", *names])
