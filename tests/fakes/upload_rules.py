"""Rules of triggers in memory."""

from collections.abc import Callable
from dataclasses import dataclass, field

from relaunch.core.triggers.upload_rules import FoundRule, UploadRule


@dataclass
class FakeUploadRules:
    """Implements UploadRules; `log` has every change, and each change calls the next function of `on_change` first."""

    name_prefix: str = "relaunch-relaunch-"
    found: dict[str, FoundRule] = field(default_factory=dict)
    log: list[tuple[str, str]] = field(default_factory=list)
    on_change: list[Callable[[], object]] = field(default_factory=list)
    failure: Exception | None = None
    takes_uploads: bool = True

    def list_rules(self) -> list[FoundRule]:
        if self.failure:
            raise self.failure
        return list(self.found.values())

    def put_rule(self, rule: UploadRule) -> None:
        self._change("put", rule.bucket)
        self.found[rule.name] = FoundRule(rule.name, rule.pattern, is_complete=True)

    def remove_rule(self, name: str) -> None:
        self._change("remove", name)
        self.found.pop(name, None)

    def _change(self, kind: str, what: str) -> None:
        if self.on_change:
            self.on_change.pop(0)()
        self.log.append((kind, what))
