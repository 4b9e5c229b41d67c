"""Matches inputs with RE2, in linear time and bounded memory; Python's `re` takes exponential time for `(a+)+`.

What RE2 has not got, it cannot match in linear time: back references and look-around. See docs/command.md for the other
differences, "Syntax" of the RE2 wiki for what it takes, and docs/decisions/0011-inputs-are-matched-with-re2.md.
"""

from typing import Any

from relaunch.ports import UnsupportedPatternError

# Bytes for the compiled pattern and the states of its matching: with 1,024 characters the slowest of a dozen nested
# repetitions took 60 ms. RE2's own default, 8 MiB, takes 80 ms to compile `\pL{1,100}`, which this refuses.
_MAX_MEMORY_BYTES = 1024 * 1024
_HINTS = {
    "invalid perl operator": "look-around, references to groups and atomic groups are not supported, for they can take"
    " exponential time",
    "invalid escape sequence": "back references, \\Z and \\u are not supported: write \\z and \\x{…}",
    "bad repetition operator": "possessive repetitions are not supported",
    "invalid repetition size": "a repetition counts to 1000 at most, nested ones multiplied",
    "pattern too large": "make its repetitions smaller",
}


class Re2Patterns:
    """Implements InputPatterns."""

    def matches(self, pattern: str, value: str) -> bool:
        compiled = compile_pattern(pattern)
        try:
            return compiled.fullmatch(value) is not None
        except UnicodeEncodeError:
            # JSON can carry half of a surrogate pair, which is no character: nothing matches it.
            return False


def compile_pattern(pattern: str) -> Any:
    """Compile a pattern; the last 128 are kept.

    Raises:
        UnsupportedPatternError: RE2 does not take it; the message says why, and what to write instead.
    """
    # Imported here because most functions and commands check no inputs, and it takes some milliseconds.
    import re2  # noqa: PLC0415

    options = re2.Options()
    options.max_mem = _MAX_MEMORY_BYTES
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        # RE2 tells in bytes, which may cut a character.
        reason = error.args[0].decode(errors="replace")
    except UnicodeEncodeError as error:
        reason = str(error)
    hint = next((f"; {hint}" for cause, hint in _HINTS.items() if reason.startswith(cause)), "")
    raise UnsupportedPatternError(f"`{pattern}` is not a regular expression that RE2 takes: {reason}{hint}")
