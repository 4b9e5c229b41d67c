"""Label selectors ("Labels and Selectors", Kubernetes documentation)."""

import re
from collections.abc import Mapping

from relaunch_local.kubernetes.errors import ApiError

_KEY = r"(?P<key>[A-Za-z0-9](?:[A-Za-z0-9._/-]*[A-Za-z0-9])?)"
_SET = re.compile(rf"{_KEY} +(?P<operator>in|notin) +\((?P<values>[^()]*)\)")
_EQUALITY = re.compile(rf"{_KEY} *(?P<operator>==|=|!=) *(?P<values>[A-Za-z0-9._-]*)")
_PRESENCE = re.compile(rf"(?P<operator>!?){_KEY}")


def matches(selector: str, labels: Mapping[str, str]) -> bool:
    """Return whether labels match a selector; the empty one matches all.

    Raises:
        ApiError: 400, the selector is malformed.
    """
    if not selector.strip():
        return True
    met = [_matches(each.strip(), labels) for each in re.split(r",(?![^()]*\))", selector)]
    return all(met)


def _matches(requirement: str, labels: Mapping[str, str]) -> bool:
    found = _SET.fullmatch(requirement) or _EQUALITY.fullmatch(requirement)
    if found:
        values = {each.strip() for each in found["values"].split(",")}
        return (labels.get(found["key"]) in values) is (found["operator"] in {"in", "=", "=="})
    found = _PRESENCE.fullmatch(requirement)
    if not found:
        raise ApiError(400, "BadRequest", f"unable to parse requirement: found '{requirement}'")
    return (found["key"] in labels) is (found["operator"] == "")
