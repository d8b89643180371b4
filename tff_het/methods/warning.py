"""Warnings about settings that make a method another one."""

import warnings


class MethodWarning(UserWarning):
    """Settings make a method another one; programs keep it in a run's summary."""


def warn_if(condition: bool, text: str) -> None:
    """Warns, where the condition holds."""
    if condition:
        warnings.warn(text, MethodWarning, stacklevel=3)
