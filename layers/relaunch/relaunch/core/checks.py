"""Checks of a cluster or an account: what each found, and what to do about it."""

from enum import StrEnum

from relaunch.core.records import dataclass


class Verdict(StrEnum):
    """What a check found; UNKNOWN: it could not be found out."""

    OK = "ok"
    PROBLEM = "problem"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Check:
    """A check: its name, what it found, in words, and what to do, a command where there is one."""

    name: str
    verdict: Verdict
    text: str
    to_do: str = ""


def is_ok(name: str, text: str) -> Check:
    """Return a check that found nothing wrong."""
    return Check(name, Verdict.OK, text)


def problem(name: str, text: str, to_do: str) -> Check:
    """Return a check that found something wrong."""
    return Check(name, Verdict.PROBLEM, text, to_do)


def unknown(name: str, text: str, to_do: str = "") -> Check:
    """Return a check that could not be made."""
    return Check(name, Verdict.UNKNOWN, text, to_do)
