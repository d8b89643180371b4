"""Tests of pytest as targets."""

load("@rules_python//python:defs.bzl", "py_test")

_MAIN = "//.ci/bazel:run_pytest.py"

def pytest_test(name, srcs, data = [], timeout = "long", **kwargs):
    """A test whose file is one of pytest.

    Args:
      name: The target's name.
      srcs: The file.
      data: Files that it reads.
      timeout: A name of Bazel's; "long" is 15 minutes, since TensorFlow starts slowly when busy.
      **kwargs: Further attributes of py_test.
    """
    py_test(
        name = name,
        srcs = srcs + [_MAIN],
        main = _MAIN,
        args = ["%s/%s" % (native.package_name(), file) for file in srcs],
        data = data + ["//:pyproject.toml"],
        timeout = timeout,
        # pytest takes folders with an __init__.py for packages.
        legacy_create_init = 0,
        **kwargs
    )
