"""Tests of pytest as targets."""

load("@rules_python//python:defs.bzl", "py_test")

_MAIN = "//.ci/bazel:run_pytest.py"

def pytest_test(name, srcs, data = [], **kwargs):
    """A test whose file is one of pytest.

    Args:
      name: The target's name.
      srcs: The file.
      data: Files that it reads.
      **kwargs: Further attributes of py_test.
    """
    py_test(
        name = name,
        srcs = srcs + [_MAIN],
        main = _MAIN,
        args = ["%s/%s" % (native.package_name(), file) for file in srcs],
        data = data + ["//:pyproject.toml"],
        # pytest takes folders with an __init__.py for packages.
        legacy_create_init = 0,
        **kwargs
    )
