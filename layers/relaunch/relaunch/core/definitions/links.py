"""Links that a definition has for each of its jobs: its run in Weights & Biases, MLflow, TensorBoard or elsewhere.

They are shown, and never opened by Relaunch. What stands for a placeholder has no character that a URL would need
quoted.
"""

import re
from collections.abc import Mapping

MAX_LINKS = 10
NAME_PATTERN = r"[A-Za-z0-9][A-Za-z0-9 &._-]{0,39}"
PLACEHOLDERS = ("job_id", "attempt", "definition")
_MAX_LENGTH = 500
# Texts: every function imports definitions, and few look at a link.
_PLACEHOLDER = r"\{([^{}]*)\}"
_HOST = r"https://[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?(?::[0-9]{1,5})?(?:[/?#]|$)"
_CHARACTERS = r"[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=%{}-]*"


def find_problem(template: str) -> str:
    """Return why a text is no link, in words; empty if it is one."""
    if not template.startswith("https://"):
        return "does not begin with https://"
    if len(template) > _MAX_LENGTH:
        return f"has more than {_MAX_LENGTH} characters"
    if re.match(_HOST, template) is None:
        return "names no host behind https://, as in https://wandb.ai/acme/vision/runs/{job_id}"
    if re.fullmatch(_CHARACTERS, template) is None:
        return "has a character that a URL has quoted: a blank is %20"
    unknown = [name for name in re.findall(_PLACEHOLDER, template) if name not in PLACEHOLDERS]
    if unknown or {"{", "}"} & set(re.sub(_PLACEHOLDER, "", template)):
        shown = ", ".join(f"{{{name}}}" for name in PLACEHOLDERS)
        return f"has braces that stand for nothing: there is {shown}"
    return ""


def fill_links(links: Mapping[str, str], *, definition: str, job_id: str, attempt: int | None) -> dict[str, str]:
    """Return the links of a job by name; before its first attempt those without `{attempt}`."""
    values = {"definition": definition, "job_id": job_id} | ({} if attempt is None else {"attempt": str(attempt)})
    return {
        name: re.sub(_PLACEHOLDER, lambda found: values[found[1]], template)
        for name, template in links.items()
        if values.keys() >= set(re.findall(_PLACEHOLDER, template))
    }
