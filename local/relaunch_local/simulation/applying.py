"""People who change the file of definitions and run `relaunch apply`: rules, schedules, and what is registered when.

Whoever runs it runs it again until it succeeds, with the file as it is by then. A definition that was registered by
somebody else meanwhile is refused to them, as its version is another one.
"""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from relaunch.core.definitions.definition import JobDefinition, ScheduleTrigger, Trigger
from relaunch.core.definitions.ownership import Owner, caller_of
from relaunch.core.triggers.schedules import has_schedules
from relaunch.ports import StaleWriteError
from relaunch.usecases import arrange_schedules as scheduling
from relaunch.usecases import arrange_upload_rules as arranging
from relaunch.usecases import register_definitions as registering
from relaunch_local.simulation.account import SimulatedAccount
from relaunch_local.simulation.aws.eventbridge import upload_rules
from relaunch_local.simulation.aws.scheduler import GroupOfStack
from relaunch_local.simulation.aws.template import ACCOUNT
from relaunch_local.simulation.aws.upload_rules import RulesOfBus

_FILE = "relaunch.yaml"
_MOST_TRIES = 3


@dataclass(slots=True)
class Registration:
    """A trigger of a definition, and when it was registered.

    It may be registered from `begun_at` on, and is from `sure_from` to `unsure_from`, when it may be removed; it is
    gone from `gone_at` on. None: not yet.
    """

    definition: str
    trigger: Trigger
    begun_at: datetime
    sure_from: datetime | None = None
    unsure_from: datetime | None = None
    gone_at: datetime | None = None

    def is_sure(self, since: datetime, until: datetime) -> bool:
        """Return whether it was registered for all of a time."""
        is_begun = self.sure_from is not None and self.sure_from <= since
        return is_begun and (self.unsure_from is None or until < self.unsure_from)


class Applying:
    """The file of definitions, and what `apply` makes of it."""

    def __init__(self, account: SimulatedAccount) -> None:
        """Begin with what is registered."""
        self._account = account
        self._rules = RulesOfBus(account.bus, account.calls)
        self._schedules = GroupOfStack(account.scheduler, account.calls)
        self._file = {each.name: each for each in account.scenario.every_definition}
        self._sessions = itertools.count(1)
        self._in_vain = 0
        """How often `apply` has failed in a row although no call did."""
        self._running = 0
        """How many run `apply` just now."""
        self._ended_at: datetime | None = None
        """When one of them ended last, or was killed."""
        self.registrations: list[Registration] = []
        """Of all triggers, those first that were there from the beginning."""
        for each in self._file.values():
            self._note_begin(each)
        self._note_end(self._file)

    def change(self, name: str, change: Callable[[JobDefinition], JobDefinition]) -> None:
        """Change a definition of the file."""
        self._file[name] = change(self._file[name])

    def register(self) -> None:
        """Run `relaunch apply`, as a command.

        Raises:
            TransientError, PermanentError: it failed; run it again.
        """
        self._running += 1
        began_at = self._account.clock.now()
        is_done = False
        try:
            self._register(began_at)
            is_done = True
        except StaleWriteError:
            # Somebody else applied the file meanwhile.
            self._in_vain = 0
            raise
        except Exception as error:
            self._note_failure(began_at, error)
            raise
        finally:
            self._running -= 1
            self._ended_at = self._account.clock.now()
            self._in_vain = 0 if is_done else self._in_vain

    def _note_failure(self, began_at: datetime, error: Exception) -> None:
        """Check that a file is applied in the end where no call fails."""
        has_failed = any(times[-1] >= began_at for times in self._account.calls.failed_at.values() if times)
        self._in_vain = 0 if has_failed else self._in_vain + 1
        is_applied = self._in_vain < _MOST_TRIES
        message = f"{self._in_vain} times: {error!r}"
        self._account.invariants.check("who applies a file again has it applied", is_applied, message)

    def _register(self, began_at: datetime) -> None:
        deps = self._account.deps
        rules = self._rules.adapter
        schedules = self._schedules.adapter
        registered = deps.definitions.list_registered()
        file = dict(self._file)
        definitions = list(file.values())
        owner = self._owner()
        changes = registering.compare_definitions(definitions, registered, owner)
        notes: list[str] = []
        are_scheduled = has_schedules([*definitions, *(each.definition for each in registered)])
        are_scheduled = are_scheduled or scheduling.are_left_behind(schedules, notes.append)
        arranging.plan_upload_rules(definitions, rules)
        if are_scheduled:
            scheduling.plan_schedules(definitions, schedules)
        arranging.widen_upload_rules(definitions, rules, self._pause)
        if are_scheduled:
            scheduling.add_schedules(definitions, schedules, self._pause)
        for each in definitions:
            self._note_begin(each)
        registering.register_definitions(changes, owner, deps)
        arranging.settle_upload_rules(deps.definitions, rules, self._pause)
        if are_scheduled:
            scheduling.settle_schedules(deps.definitions, schedules, self._pause)
        self._note_end(file)
        # Who was killed meanwhile has left what nobody removes before the next one.
        is_alone = self._running == 1 and (self._ended_at is None or self._ended_at < began_at)
        if is_alone:
            self._check_rules()
            if not notes:
                self.check_schedules(self._account.stores.definitions.list_definitions())

    def _owner(self) -> Owner:
        """Return who applies the file: each time another session of a role, in half of the seeds from no repository."""
        session = f"arn:aws:sts::{ACCOUNT}:assumed-role/training/ada-{next(self._sessions)}"
        repository = "github.com/acme/training" if self._account.chance.seed % 2 else ""
        return Owner(repository, _FILE, caller_of(session))

    def _note_begin(self, definition: JobDefinition) -> None:
        now = self._account.clock.now()
        known = [each for each in self.registrations if each.definition == definition.name and each.gone_at is None]
        for each in known:
            if each.trigger not in definition.triggers:
                each.unsure_from = each.unsure_from or now
        # What may be removed just now, and comes again, is another registration.
        there = [each.trigger for each in known if each.unsure_from is None]
        self.registrations += [
            Registration(definition.name, each, now) for each in definition.triggers if each not in there
        ]

    def _note_end(self, file: dict[str, JobDefinition]) -> None:
        now = self._account.clock.now()
        for each in self.registrations:
            if each.unsure_from is None and each.trigger in file[each.definition].triggers:
                each.sure_from = each.sure_from or now
            elif each.unsure_from is not None and each.trigger not in file[each.definition].triggers:
                each.gone_at = each.gone_at or now

    def _check_rules(self) -> None:
        account = self._account
        definitions = account.stores.definitions.list_definitions()
        wanted = {each.name for each in upload_rules(definitions)}
        found = {each.name for each in account.bus.upload_rules()}
        message = f"{sorted(found)}, not {sorted(wanted)}"
        account.invariants.check("rules of triggers are those of the definitions", found == wanted, message)

    def check_schedules(self, definitions: Sequence[JobDefinition]) -> None:
        """Check that Scheduler has the schedules of definitions, each once, and no other."""
        triggers = {
            trigger for each in definitions for trigger in each.triggers if isinstance(trigger, ScheduleTrigger)
        }
        wanted = sorted((each.expression, each.time_zone, 86_400 if each.catches_up else 3_600) for each in triggers)
        schedules = self._account.scheduler.schedules.values()
        found = sorted(
            (
                str(each["ScheduleExpression"]),
                str(each["ScheduleExpressionTimezone"]),
                int(each["Target"]["RetryPolicy"]["MaximumEventAgeInSeconds"]),
            )
            for each in schedules
            if each["State"] == "ENABLED"
        )
        message = f"{found}, not {wanted}"
        self._account.invariants.check("schedules are those of the definitions", found == wanted, message)

    def _pause(self, seconds: float) -> None:
        self._account.runtime.pause(seconds, "a command waits")
