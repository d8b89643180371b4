"""Repositories that are made on this machine: nothing is downloaded."""

_VENV = """\
load("@rules_python//python:defs.bzl", "py_runtime", "py_runtime_pair")

package(default_visibility = ["//visibility:public"])

py_runtime(
    name = "runtime",
    interpreter_path = "{python}",
    python_version = "PY3",
)

py_runtime_pair(
    name = "runtimes",
    py3_runtime = ":runtime",
)

toolchain(
    name = "toolchain",
    toolchain = ":runtimes",
    toolchain_type = "@bazel_tools//tools/python:toolchain_type",
)
"""

def _virtual_environment(ctx):
    active = ctx.os.environ.get("VIRTUAL_ENV")
    folder = active or str(ctx.path(Label("//:BUILD")).dirname) + "/.venv"
    python = folder + "/bin/python"
    if not ctx.path(python).exists:
        fail("No Python at %s: activate a virtual environment, or make one by `uv sync`." % python)
    ctx.file("BUILD", _VENV.format(python = python))

virtual_environment = repository_rule(
    implementation = _virtual_environment,
    doc = "A toolchain of the active virtual environment's Python, or of that in .venv.",
    environ = ["VIRTUAL_ENV"],
    local = True,
)

def _built_in_rules(ctx):
    lines = ["load(\"%s\", _%s = \"%s\")" % (where, name, name) for name, where in ctx.attr.loaded.items()]
    lines += ["%s = _%s" % (name, name) for name in ctx.attr.loaded]
    lines += ["%s = native.%s" % (name, name) for name in ctx.attr.native]
    ctx.file(ctx.attr.package + "/BUILD")
    ctx.file(ctx.attr.package + "/defs.bzl", "\n".join(lines) + "\n")

built_in_rules = repository_rule(
    implementation = _built_in_rules,
    doc = "A repository of rules that Bazel 4.2.3 has built in, where later versions have them.",
    attrs = {
        "loaded": attr.string_dict(doc = "Rule -> file of Bazel's that has it."),
        "native": attr.string_list(doc = "Rules that BUILD files of Bazel 4.2.3 know."),
        "package": attr.string(mandatory = True, doc = "Where its defs.bzl is."),
    },
)
