"""Flags for a part of a program: set inside a `with` block, as they were after it."""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from types import ModuleType

from absl import flags
from absl.testing import flagsaver


@contextlib.contextmanager
def only(values: Mapping[str, str], *, groups: Sequence[ModuleType]) -> Iterator[None]:
    """Gives the flags of some modules these values, or else their defaults.

    Args:
      values: The flags' texts by name, as they stand on a command line.
      groups: The modules that define the flags.

    Raises:
      ValueError: If a flag does not exist or does not take its text.
    """
    by_module = flags.FLAGS.flags_by_module_dict()
    own = {flag.name: flag for group in groups for flag in by_module[group.__name__]}
    if unknown := sorted(set(values) - set(own)):
        raise ValueError(f"There is no flag {', '.join(unknown)}; there are: {', '.join(own)}.")
    saved = flagsaver.save_flag_values()
    try:
        flags.FLAGS.mark_as_parsed()
        for name, flag in own.items():
            flag.unparse()
            if name in values:
                flag.parse(values[name])
        yield
    except flags.Error as error:
        raise ValueError(error) from error
    finally:
        flagsaver.restore_flag_values(saved)
