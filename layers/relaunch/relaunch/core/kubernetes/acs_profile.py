"""The default drivers of an ACS cluster: `selectors` of its ConfigMap `acs-profile`, read and changed as a text.

The value is a JSON array of selectors, each with a name, the pods that it selects and what it gives to them. ACS
ignores it as a whole while it is malformed. All but the selector that is changed is kept as it is written.

Sources: "Configure an acs-profile to automatically inject pod configurations", "Specify GPU models and driver versions
for ACS GPU-accelerated pods", Container Compute Service.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from relaunch.core.definitions.kubernetes_workload import ComputeClass
from relaunch.core.kubernetes.acs import COMPUTE_CLASS, GPU_DRIVER, GPU_MODEL
from relaunch.core.records import dataclass

# Where the selectors are: the key of a ConfigMap.
NAMESPACE = "kube-system"
NAME = "acs-profile"
KEY = "selectors"
_BETWEEN = frozenset(", \t\r\n")


class ProfileError(ValueError):
    """The selectors cannot be read, or not be changed as asked; the message says what to do."""


class NoDefaultDriverError(ProfileError):
    """No selector sets a driver for the pods."""


@dataclass(frozen=True, slots=True)
class PodSelection:
    """The pods of a compute class, or those of one model of it.

    A selector finds pods by labels. Those of class `gpu-hpn` name their model in the node selector instead.
    """

    compute_class: ComputeClass
    model: str = ""

    @property
    def labels(self) -> dict[str, str]:
        """The labels that all these pods have."""
        model = {GPU_MODEL: self.model} if self.model else {}
        return {COMPUTE_CLASS: self.compute_class.value, **model}

    @property
    def selector_name(self) -> str:
        """The name of a new selector of these pods."""
        return "-".join(filter(None, (self.compute_class.value, self.model, "driver"))).lower()


@dataclass(frozen=True, slots=True)
class Selector:
    """A selector as it is written, from `start` to `end` of the text."""

    document: Mapping[str, Any]
    start: int
    end: int

    @property
    def name(self) -> str:
        """Its name, empty if it has none."""
        return str(self.document.get("name") or "")

    @property
    def driver(self) -> str:
        """The driver that it gives to pods, empty if none."""
        return str(self._effect_labels.get(GPU_DRIVER, ""))

    @property
    def match_labels(self) -> Mapping[str, Any]:
        """The labels that its pods have, among what else it asks for."""
        return _mapping(_mapping(self.document.get("objectSelector")).get("matchLabels"))

    @property
    def _effect_labels(self) -> Mapping[str, Any]:
        return _mapping(_mapping(self.document.get("effect")).get("labels"))

    def selects(self, pods: PodSelection) -> bool:
        """Return whether it selects these pods, by nothing but their labels."""
        wanted = {"matchLabels": pods.labels}
        return self.document.get("objectSelector") == wanted and not self.document.get("namespaceSelector")

    def may_select(self, pods: PodSelection) -> bool:
        """Return whether some of these pods may be among those that it selects."""
        known = pods.labels
        return all(known.get(key, value) == value for key, value in self.match_labels.items())

    def with_driver(self, driver: str) -> dict[str, Any]:
        """Return the selector with another driver; empty if `driver` is, and nothing is left that it does."""
        labels = {key: value for key, value in self._effect_labels.items() if key != GPU_DRIVER}
        if driver:
            labels = {**self._effect_labels, GPU_DRIVER: driver}
        effect = {**self.document["effect"], "labels": labels}
        return {**self.document, "effect": effect} if any(effect.values()) else {}


def read_selectors(text: str) -> tuple[Selector, ...]:
    """Read the selectors in their order.

    Raises:
        ProfileError: the text is no JSON array of objects.
    """
    if not text.strip():
        return ()
    try:
        read = json.loads(text, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        raise ProfileError(f"it is no JSON: {error.msg} in line {error.lineno}, column {error.colno}") from error
    except (ValueError, RecursionError) as error:
        raise ProfileError(f"it is no JSON: {error}") from error
    if not isinstance(read, list) or not all(isinstance(each, dict) for each in read):
        raise ProfileError("it is no array of objects")
    selectors: list[Selector] = []
    position = text.index("[") + 1
    decoder = json.JSONDecoder()
    for _ in read:
        start = position
        while text[start] in _BETWEEN:
            start += 1
        document, position = decoder.raw_decode(text, start)
        selectors.append(Selector(document, start, position))
    return tuple(selectors)


def set_driver(text: str, pods: PodSelection, driver: str) -> str:
    """Return the selectors with a driver for these pods: in the selector that has one for them, or in a new one.

    Raises:
        ProfileError: the text is malformed, several selectors have a driver for these pods, or another selector has the
            name of the new one.
    """
    selectors = read_selectors(text)
    own = _find(selectors, pods)
    if own is not None:
        return text if own.driver == driver else _replace(text, own, own.with_driver(driver))
    if any(each.name == pods.selector_name for each in selectors):
        raise ProfileError(f"the selector {pods.selector_name} selects other pods: rename it, or remove it")
    entry = {
        "name": pods.selector_name,
        "objectSelector": {"matchLabels": pods.labels},
        "effect": {"labels": {GPU_DRIVER: driver}},
    }
    if not selectors:
        return f"[\n{_write(entry, '  ', is_first_line=True)}\n]"
    last = selectors[-1]
    lead = _lead(text, last)
    return f"{text[: last.end]},\n{_write(entry, lead, is_first_line=True)}{text[last.end :]}"


def remove_driver(text: str, pods: PodSelection) -> str:
    """Return the selectors without the driver for these pods, and without the selector if it does nothing else.

    Raises:
        NoDefaultDriverError: no selector has a driver for exactly these pods.
        ProfileError: the text is malformed, or several selectors have a driver for these pods.
    """
    selectors = read_selectors(text)
    own = _find(selectors, pods)
    if own is None:
        raise NoDefaultDriverError("no selector sets a driver for exactly these pods")
    if rest := own.with_driver(""):
        return _replace(text, own, rest)
    index = selectors.index(own)
    if index + 1 < len(selectors):
        return text[: own.start] + text[selectors[index + 1].start :]
    return text[: selectors[index - 1].end] + text[own.end :] if index else ""


def find_overlaps(selectors: Sequence[Selector], pods: PodSelection) -> tuple[Selector, ...]:
    """Return the other selectors that set a driver for some of these pods: which one counts is not documented."""
    return tuple(each for each in selectors if each.driver and each.may_select(pods) and not each.selects(pods))


def _find(selectors: Sequence[Selector], pods: PodSelection) -> Selector | None:
    found = [each for each in selectors if each.driver and each.selects(pods)]
    if len(found) > 1:
        names = " and ".join(each.name or "one without a name" for each in found)
        raise ProfileError(f"the selectors {names} set a driver for the same pods: remove all but one")
    return found[0] if found else None


def _replace(text: str, own: Selector, document: Mapping[str, Any]) -> str:
    return text[: own.start] + _write(document, _lead(text, own)) + text[own.end :]


def _write(document: Mapping[str, Any], lead: str, *, is_first_line: bool = False) -> str:
    written = json.dumps(document, indent=2, ensure_ascii=False).replace("\n", f"\n{lead}")
    return f"{lead}{written}" if is_first_line else written


def _lead(text: str, selector: Selector) -> str:
    """Return the white space before a selector in its line."""
    lead = text[text.rfind("\n", 0, selector.start) + 1 : selector.start]
    return lead if lead.isspace() else ""


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")
