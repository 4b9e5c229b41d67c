"""What the shell completes of options whose values are known without a stack; without these it would offer files."""

import re
from collections.abc import Callable, Iterable

Complete = Callable[[str], list[str]]

# A shell takes what has a space for two words.
_ONE_WORD = re.compile(r"[A-Za-z0-9_.-]+")


def _completing(load: Callable[[], Iterable[str]]) -> Complete:
    """Return a function that completes the words that `load` returns."""

    def complete(incomplete: str) -> list[str]:
        return [word for word in load() if word.startswith(incomplete) and _ONE_WORD.fullmatch(word)]

    return complete


def _states() -> Iterable[str]:
    from relaunch.core.jobs.state import JobState

    return [state.value for state in JobState]


def _cost_groups() -> Iterable[str]:
    from relaunch.core.jobs.cost_report import GROUPS

    return GROUPS


def _targets() -> Iterable[str]:
    from relaunch.core.definitions.targets import Target

    return [str(target) for target in Target]


def _purchases() -> Iterable[str]:
    from relaunch.core.definitions.accelerator import PurchasePolicy

    return [policy.value for policy in PurchasePolicy]


def _models() -> Iterable[str]:
    from relaunch.adapters.offerings.bundled import load_catalogue
    from relaunch.core.offerings.instance_types import known_models

    return known_models(load_catalogue())


def _neuron_models() -> Iterable[str]:
    from relaunch.adapters.offerings.bundled import load_catalogue
    from relaunch.core.offerings.instance_types import known_neuron_models

    return known_neuron_models(load_catalogue())


def _types() -> Iterable[str]:
    from relaunch.adapters.offerings.bundled import load_catalogue

    return load_catalogue()


def _regions() -> Iterable[str]:
    from relaunch.adapters.offerings.bundled import known_regions

    return known_regions()


def _notices() -> Iterable[str]:
    from relaunch.core.definitions.notice_routes import NoticeKind

    return [kind.value for kind in NoticeKind]


def one_of(*words: str) -> Complete:
    """Return a function that completes these words."""
    return _completing(lambda: words)


complete_cost_group = _completing(_cost_groups)
complete_state = _completing(_states)
complete_target = _completing(_targets)
complete_purchase = _completing(_purchases)
complete_model = _completing(_models)
complete_neuron_model = _completing(_neuron_models)
complete_type = _completing(_types)
complete_region = _completing(_regions)
complete_notice = _completing(_notices)
