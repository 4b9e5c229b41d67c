"""Ask GitHub again for the deliveries that the webhook could not answer."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

from relaunch.core.definitions.definition import GithubTrigger
from relaunch.core.lifecycle.metrics import Metric, MetricDatum
from relaunch.core.triggers.failed_deliveries import DeliveryAttempt, SweepProgress, decide_redeliveries, start_progress
from relaunch.ports import NotGrantedError, PermanentError, PortError, TransientError
from relaunch.ports.deliveries import DeliveryDependencies, SweepReport, TokenRefusedError

# 20,000 attempts of one webhook: the newest ones, if it has more.
_MAX_PAGES = 200
# Each pass begins elsewhere, so that none is always behind one whose deliveries cannot be listed. The step is a prime,
# so that passes without time for all begin far from each other.
_TURN_SECONDS = 1800
_STEP = 7919
# An item of the table has 400 KB.
_MAX_REPORTED = 20


def sweep_deliveries(deps: DeliveryDependencies, has_time: Callable[[], bool]) -> SweepReport:
    """Ask for the failed deliveries of all webhooks while there is time; return what became of it.

    Nothing is raised that the next pass may do as well: errors of GitHub, of the token and of the table are reported.
    """
    swept = _Pass(deps, has_time)
    interruption = ""
    try:
        swept.run()
    except TransientError as error:
        interruption = str(error)
    except PermanentError as error:
        swept.problems.append(str(error))
    report = SweepReport(
        swept.now,
        swept.redelivered,
        tuple(swept.problems[:_MAX_REPORTED]),
        tuple(swept.unswept[:_MAX_REPORTED]),
        interruption or swept.shortage,
    )
    deps.log.decided(
        "deliveries-swept",
        redelivered=report.redelivered,
        problems=report.problems,
        unswept=report.unswept,
        interruption=report.interruption or None,
    )
    failed = len(swept.problems) + swept.lost
    if failed:
        deps.metrics.record(MetricDatum(Metric.REFRESHES_FAILED, failed))
    try:
        deps.deliveries.save_report(report)
    except PortError as error:
        deps.log.decided("postponed", reason=f"the report of a sweep: {error}")
    return report


def _in_turn(repositories: Sequence[str], now: datetime) -> Sequence[str]:
    start = int(now.timestamp() // _TURN_SECONDS) * _STEP % max(len(repositories), 1)
    return [*repositories[start:], *repositories[:start]]


class _Pass:
    """One pass over all webhooks, and what became of it."""

    def __init__(self, deps: DeliveryDependencies, has_time: Callable[[], bool]) -> None:
        self._deps = deps
        self._has_time = has_time
        self.now: datetime = deps.clock.now()
        self.redelivered = 0
        self.lost = 0
        self.problems: list[str] = []
        self.unswept: list[str] = []
        self.shortage = ""

    def run(self) -> None:
        """Sweep the webhooks of the repositories that triggers watch, of their organizations where these have none.

        Raises:
            TransientError: GitHub limits the rate or does not answer; what was asked for stays asked for.
            TokenRefusedError: no call can succeed.
        """
        watched = {
            each.repository
            for definition in self._deps.definitions.list_definitions()
            for each in definition.triggers
            if isinstance(each, GithubTrigger)
        }
        without: dict[str, dict[str, str]] = {}
        for repository in _in_turn(sorted(watched), self.now):
            if not self._has_time():
                self.shortage = f"no time was left for {repository}"
                return
            webhooks, why = self._find_webhooks(f"repos/{repository}")
            for webhook in webhooks:
                self._try(webhook)
            if not webhooks:
                without.setdefault(repository.partition("/")[0], {})[repository] = why
        self._sweep_organizations(without)

    def _sweep_organizations(self, without: Mapping[str, Mapping[str, str]]) -> None:
        """Sweep the webhooks of owners of repositories without one; these are given with why none can be listed."""
        for owner, repositories in without.items():
            if not self._has_time():
                self.shortage = f"no time was left for {owner}"
                return
            # Who is no organization has none, and the token need not reach one that has none of ours.
            webhooks, _ = self._find_webhooks(f"orgs/{owner}")
            for webhook in webhooks:
                self._try(webhook)
            if not webhooks:
                self.problems += filter(None, repositories.values())
                self.unswept += (repository for repository, why in repositories.items() if not why)

    def _find_webhooks(self, owner: str) -> tuple[Sequence[str], str]:
        """Return the webhooks of a repository or organization, and why they cannot be listed, empty if they can."""
        try:
            return self._deps.webhooks.find_webhooks(owner), ""
        except TokenRefusedError:
            raise
        except PermanentError as error:
            return (), str(error)

    def _try(self, webhook: str) -> None:
        """Sweep a webhook; a refusal does not affect the others."""
        try:
            self._sweep(webhook)
        except TokenRefusedError:
            raise
        except PermanentError as error:
            self.problems.append(str(error))

    def _sweep(self, webhook: str) -> None:
        deps = self._deps
        progress = deps.deliveries.load_progress(webhook) or start_progress(self.now)
        attempts, has_all = self._list_attempts(webhook, progress)
        decision = decide_redeliveries(attempts, progress, self.now, has_all=has_all)
        if not has_all:
            deps.log.decided("sweep-limited", webhook=webhook, reason="there are more attempts than one pass lists")
        if decision.postponed:
            reason = f"{decision.postponed} more deliveries failed than one pass asks for"
            deps.log.decided("sweep-limited", webhook=webhook, reason=reason)
        for guid in decision.lost:
            deps.log.decided("delivery-lost", webhook=webhook, delivery=guid)
        self.lost += len(decision.lost)
        # Before the calls: it stops at the oldest delivery that is not settled, whether or not that is asked for.
        deps.deliveries.save_progress(webhook, decision.progress)
        for attempt in decision.redeliver:
            if not self._has_time():
                self.shortage = f"no time was left for all failed deliveries of {webhook}"
                return
            self._redeliver(webhook, attempt)

    def _list_attempts(self, webhook: str, progress: SweepProgress) -> tuple[list[DeliveryAttempt], bool]:
        """Return the attempts since the progress, the newest ones at least, and whether these are all."""
        attempts: list[DeliveryAttempt] = []
        cursor = ""
        for _ in range(_MAX_PAGES):
            page = self._deps.webhooks.list_attempts(webhook, cursor)
            attempts += page.attempts
            cursor = page.older
            if not cursor or (attempts and attempts[-1].delivered_at < progress.settled_until):
                return attempts, True
            if not self._has_time():
                break
        return attempts, False

    def _redeliver(self, webhook: str, attempt: DeliveryAttempt) -> None:
        """Ask for one delivery; a refusal of this one does not affect the others."""
        deps = self._deps
        try:
            deps.webhooks.redeliver(webhook, attempt.attempt_id)
        except NotGrantedError:
            raise
        except PermanentError as error:
            deps.log.decided("not-redelivered", webhook=webhook, delivery=attempt.guid, reason=str(error))
            return
        self.redelivered += 1
        deps.log.decided("redelivered", webhook=webhook, delivery=attempt.guid, answered=attempt.status_code)
