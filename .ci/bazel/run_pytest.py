"""Runs pytest on the files that are named, the way Bazel wants it."""

import os
import sys

import pytest

if __name__ == "__main__":
    folder = os.environ["TEST_TMPDIR"]
    # The home folder cannot be written to; Matplotlib would share a folder among forked processes.
    os.environ.setdefault("MPLCONFIGDIR", folder)
    options = ["-p", "no:cacheprovider", f"--basetemp={folder}/pytest", "-m", ""]
    if "XML_OUTPUT_FILE" in os.environ:
        options.append(f"--junitxml={os.environ['XML_OUTPUT_FILE']}")
    if "TESTBRIDGE_TEST_ONLY" in os.environ:  # Bazel's --test_filter.
        options += ["-k", os.environ["TESTBRIDGE_TEST_ONLY"]]
    sys.exit(pytest.main([*options, *sys.argv[1:]]))
