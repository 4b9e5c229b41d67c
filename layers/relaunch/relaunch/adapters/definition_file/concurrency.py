"""Which jobs of a definition run side by side, in a definition file."""

from typing import Annotated

from pydantic import StringConstraints

from relaunch.adapters.definition_file.triggers import StrictModel
from relaunch.core.definitions.concurrency import Concurrency, find_unknown_placeholders
from relaunch.core.offerings.instance_types import nearest_names

_EXPRESSION = "${{"


class ConcurrencyModel(StrictModel):
    """Of the jobs of one group one runs at a time, and the newest one waits for it, or has it cancelled."""

    group: Annotated[str, StringConstraints(min_length=1, max_length=200)]
    """The group: a text with `{branch}`, `{repository}`, `{definition}` and `{inputs.NAME}` of declared inputs."""
    cancel_in_progress: bool = False
    """Whether a newer job of the group has the one in progress cancelled, instead of waiting until it has ended."""

    def to_core(self) -> Concurrency:
        """Return the core type."""
        return Concurrency(self.group, self.cancel_in_progress)


def check_group(concurrency: ConcurrencyModel | None, inputs: object) -> ConcurrencyModel | None:
    """Reject placeholders that stand for nothing; `inputs` are the declared ones, None if they are invalid."""
    if concurrency is None or not isinstance(inputs, dict):
        return concurrency
    unknown = find_unknown_placeholders(concurrency.group, inputs)
    if not unknown:
        return concurrency
    known = ("branch", "repository", "definition", *(f"inputs.{name}" for name in inputs))
    listed = ", ".join(f"{{{each}}}" for each in known)
    advice = _advise(concurrency.group, unknown[0], known)
    raise ValueError(f"`{{{unknown[0]}}}` in `group` stands for nothing, there is {listed}{advice}")


def _advise(group: str, unknown: str, known: tuple[str, ...]) -> str:
    """Return what to write instead of a placeholder that there is not."""
    if _EXPRESSION in group:
        return "; it takes no expressions of GitHub Actions: instead of `${{ github.ref }}` write `{branch}`"
    if unknown.startswith("inputs."):
        return "; declare it under `inputs`"
    near = nearest_names(unknown, known, 1)
    return f"; did you mean `{{{near[0]}}}`?" if near else ""
