"""Output of `relaunch acs-profile`."""

import difflib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.text import Text

from relaunch.core.kubernetes.acs_profile import (
    KEY,
    NAME,
    NAMESPACE,
    PodSelection,
    Selector,
    find_overlaps,
    read_selectors,
)
from relaunch_cli.views.table import PlainTable


@dataclass(frozen=True, slots=True)
class DefaultRow:
    """A selector that sets a driver, and what is doubtful about the driver."""

    selector: Selector
    doubt: str

    def to_json(self) -> Mapping[str, Any]:
        """Return the row as JSON."""
        document = self.selector.document
        return {
            "name": self.selector.name or None,
            "object_selector": document.get("objectSelector"),
            "namespace_selector": document.get("namespaceSelector"),
            "driver": self.selector.driver,
            "doubt": self.doubt or None,
        }


@dataclass(frozen=True, slots=True)
class Change:
    """A change of the selectors: the driver for some pods, empty if it is removed, and the texts."""

    pods: PodSelection
    driver: str
    before: str
    after: str

    @property
    def is_needed(self) -> bool:
        """Return whether anything changes."""
        return self.before != self.after

    @property
    def overlaps(self) -> list[str]:
        """Return the names of the other selectors that set a driver for some of these pods."""
        found = find_overlaps(read_selectors(self.before), self.pods)
        return [each.name or "a selector without a name" for each in found]

    @property
    def summary(self) -> str:
        """Return what came of it."""
        pods = _write_labels(self.pods.labels.items())
        if not self.is_needed:
            return f"nothing to change: pods with {pods} get driver {self.driver} already"
        if not self.driver:
            return f"the default driver of pods with {pods} was removed"
        return f"new pods with {pods} get driver {self.driver}; running ones keep theirs"

    def to_json(self) -> Mapping[str, Any]:
        """Return the change as JSON."""
        return {
            "labels": self.pods.labels,
            "driver": self.driver or None,
            "is_changed": self.is_needed,
            "before": self.before,
            "after": self.after,
        }


def render_defaults(rows: Sequence[DefaultRow]) -> PlainTable | Text:
    """Return the table of default drivers."""
    if not rows:
        return Text(f"{NAMESPACE}/{NAME} sets no driver: pods that name none get ACS's default for their model")
    table = PlainTable("SELECTOR", "DRIVER", "PODS", prose="wrapped")
    for row in rows:
        table.add_row(row.selector.name or "-", row.selector.driver, Text(_describe_pods(row.selector)))
    return table


def _describe_pods(selector: Selector) -> str:
    """Return the labels that pods are selected by, in the short form of kubectl where they have one."""
    parts = []
    for key in ("objectSelector", "namespaceSelector"):
        asked = selector.document.get(key)
        if not asked:
            continue
        is_plain = (
            isinstance(asked, dict) and asked.keys() == {"matchLabels"} and isinstance(asked["matchLabels"], dict)
        )
        words = _write_labels(asked["matchLabels"].items()) if is_plain else json.dumps(asked)
        parts.append(words if key == "objectSelector" else f"in namespaces with {words}")
    return " ".join(parts) or "all"


def _write_labels(labels: Iterable[tuple[str, object]]) -> str:
    return ",".join(f"{key}={value}" for key, value in labels)


def render_difference(change: Change) -> Text:
    """Return the difference of the selectors, line by line."""
    name = f"{NAMESPACE}/{NAME} {KEY}"
    lines = difflib.unified_diff(change.before.splitlines(), change.after.splitlines(), name, name, lineterm="")
    styles = {"+": "green", "-": "red", "@": "cyan"}
    return Text("\n").join(Text(line, style=styles.get(line[:1], "")) for line in lines)
