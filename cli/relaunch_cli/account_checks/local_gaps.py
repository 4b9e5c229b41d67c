"""What the local world does not answer, which is no fault of the account that it stands for."""

from collections.abc import Sequence
from dataclasses import dataclass

from relaunch.core.checks import Check, Verdict

# The codes of the emulator and of the simulator of ECS and EC2 for operations that they do not have.
_MISSING = ("InvalidAction", "UnknownOperationException")
# The emulator takes reserved concurrency, and tells none; it has no parameters of AWS, of which machines have images.
_UNTOLD = (
    ("Lambda concurrency", "keep spot warnings and GitHub waiting"),
    ("launch template ", "which does not exist or has no image"),
)


@dataclass(frozen=True, slots=True)
class LocalChecks:
    """The checks that the local world can answer, and the names of the others."""

    checks: Sequence[Check]
    left_out: Sequence[str]


def without_gaps(checks: Sequence[Check]) -> LocalChecks:
    """Leave out what the local world cannot tell."""
    gaps = [each for each in checks if _is_gap(each)]
    return LocalChecks([each for each in checks if each not in gaps], [each.name for each in gaps])


def _is_gap(check: Check) -> bool:
    if check.verdict is Verdict.UNKNOWN:
        return check.text.endswith(_MISSING)
    is_untold = any(check.name.startswith(name) and check.text.endswith(text) for name, text in _UNTOLD)
    return check.verdict is Verdict.PROBLEM and is_untold
