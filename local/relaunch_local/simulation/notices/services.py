"""The services that notices go to: Slack with threads, endpoints that verify signatures, an SNS topic.

Calls take time, fail, are limited, and are answered too late; a receiver may take nothing for hours, or never again.
"""

import base64
import json
from collections.abc import Callable, Mapping
from email.message import Message
from email.utils import format_datetime
from typing import Any

from relaunch.adapters.notices.configuration import ReceiverConfiguration, write_configuration
from relaunch.adapters.notices.https_sender import DEADLINE_SECONDS, Answer, HttpsSender, NoAnswerError
from relaunch.adapters.notices.slack import POST_MESSAGE
from relaunch.adapters.notices.standard_webhook import SECRET_PREFIX
from relaunch_local.ecs import Clock
from relaunch_local.simulation.aws.clients import client_error
from relaunch_local.simulation.aws.runtime import Runtime
from relaunch_local.simulation.chance import Chance
from relaunch_local.simulation.notice_plans import WEBHOOK_HOST, Away, NoticePlan, ReceiverPlan, Service
from relaunch_local.simulation.notices.checks import NoticeChecks
from relaunch_local.simulation.notices.receipts import Receipt, UnreadableError, read_signed, read_text

_LATENCY = (0.05, 0.6)
_REFUSED = 0.06
_LIMITED = 0.05
_UNANSWERED = 0.03
_ANSWER_LOST = 0.05
_THREAD_DELETED = 0.05
# Slack's, and half a minute; one in four says it as a date.
_RETRY_AFTER = (1, 30)


class Services:
    """All receivers of a seed; the checks get what they take."""

    def __init__(self, plan: NoticePlan, clock: Clock, chance: Chance, runtime: Runtime, checks: NoticeChecks) -> None:
        self._clock = clock
        self._started_at = clock.now()
        self._chance = chance
        self._runtime = runtime
        self._checks = checks
        self._plans = {each.name: each for each in plan.receivers}
        self._messages: dict[str, set[str]] = {name: set() for name in self._plans}
        """By receiver: the messages that are there, under which others may be put."""

    def parameters(self) -> Mapping[str, str]:
        """Return the receivers as they are stored."""
        return {name: write_configuration(_configuration(each)) for name, each in self._plans.items()}

    def make_sender(self, hosts: Any) -> HttpsSender:
        """Return a sender to these services alone."""
        return _Sender(tuple(hosts), self)

    def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> Answer:
        """Take a request over HTTPS, or fail it; raises NoAnswerError."""
        if url == POST_MESSAGE:
            plan = self._plans[headers["Authorization"].removeprefix("Bearer xoxb-")]
            return self._exchange(plan, lambda: self._take_slack(plan, json.loads(body)))
        plan = self._plans[url.rpartition("/")[2]]
        return self._exchange(plan, lambda: self._take_signed(plan, body, headers))

    def publish(self, **parameters: Any) -> Any:
        """SNS: Publish."""
        plan = self._plans[parameters["TopicArn"].rpartition(":")[2]]
        self._called(plan)
        absence = self._absence(plan)
        if absence is not None:
            raise client_error("AuthorizationError" if absence is Away.REVOKED else "InternalError", "publish")
        self._checks.received(plan, self._read_text(plan, parameters["Subject"], parameters["Message"]))
        return {"MessageId": "published"}

    def is_away(self, plan: ReceiverPlan) -> bool:
        """Return whether a receiver takes nothing now."""
        return self._absence(plan) is not None

    def _absence(self, plan: ReceiverPlan) -> Away | None:
        at = (self._clock.now() - self._started_at).total_seconds()
        return next((each.kind for each in plan.absences if each.is_on(at)), None)

    def _called(self, plan: ReceiverPlan) -> None:
        invocation = self._runtime.current
        self._checks.called(plan, invocation.function if invocation is not None else "")

    def _exchange(self, plan: ReceiverPlan, take: Callable[[], Receipt | Answer]) -> Answer:
        self._called(plan)
        self._pause("is sent", plan)
        fault = self._fault(plan)
        if fault is not None:
            return fault
        if self._strikes("notice-unanswered", _UNANSWERED, plan):
            raise self._no_answer(plan)
        taken = take()
        self._pause("took effect", plan)
        if isinstance(taken, Answer):
            return taken
        if self._strikes("notice-answer-lost", _ANSWER_LOST, plan):
            raise self._no_answer(plan)
        taken.is_answered = True
        ts = {"ts": taken.ts} if taken.ts else {}
        return _answer(200, {"ok": True, **ts})

    def _fault(self, plan: ReceiverPlan) -> Answer | None:
        """Return the answer of a receiver that takes nothing now, or fails this call; None if it takes it."""
        match self._absence(plan):
            case Away.SILENT:
                raise self._no_answer(plan)
            case Away.REVOKED if plan.service is Service.SLACK:
                return _answer(200, {"ok": False, "error": "token_revoked"})
            case Away.REVOKED:
                return _answer(403, {})
            case Away.REFUSES:
                return _answer(503, {})
            case _:
                pass
        if self._strikes("notice-refused", _REFUSED, plan):
            return _answer(500, {})
        if self._strikes("notice-limited", _LIMITED, plan):
            return self._limit()
        return None

    def _limit(self) -> Answer:
        dice = self._chance.stream("notices/limits")
        seconds = dice.randint(*_RETRY_AFTER)
        text = str(seconds)
        if dice.random() < 0.25:
            text = format_datetime(self._clock.now().replace(microsecond=0), usegmt=True)
        return _answer(429, {"ok": False, "error": "ratelimited"}, {"Retry-After": text})

    def _take_slack(self, plan: ReceiverPlan, message: Mapping[str, Any]) -> Receipt | Answer:
        there = self._messages[plan.name]
        thread = message.get("thread_ts", "")
        if thread and self._strikes("slack-thread-deleted", _THREAD_DELETED, plan):
            there.discard(thread)
            self._checks.thread_deleted(plan, thread)
        if thread and thread not in there:
            return _answer(200, {"ok": False, "error": "thread_not_found"})
        title, _, text = message["text"].partition("\n")
        receipt = self._read_text(plan, title, text)
        receipt.thread = thread
        receipt.ts = f"{self._clock.now().timestamp():.6f}"
        there.add(receipt.ts)
        self._checks.received(plan, receipt)
        return receipt

    def _take_signed(self, plan: ReceiverPlan, body: bytes, headers: Mapping[str, str]) -> Receipt | Answer:
        try:
            receipt = read_signed(plan.name, self._clock.now(), body, headers, _key(plan))
        except UnreadableError as error:
            self._checks.unreadable(plan, str(error))
            return _answer(400, {})
        receipt.invocation = self._runtime.current
        self._checks.received(plan, receipt)
        return receipt

    def _read_text(self, plan: ReceiverPlan, title: str, text: str) -> Receipt:
        try:
            receipt = read_text(plan.name, self._clock.now(), title, text)
        except UnreadableError as error:
            self._checks.unreadable(plan, str(error))
            raise
        receipt.invocation = self._runtime.current
        return receipt

    def _no_answer(self, plan: ReceiverPlan) -> NoAnswerError:
        self._runtime.pause(DEADLINE_SECONDS, f"{plan.name} is waited for")
        return NoAnswerError(f"no answer from {plan.name}")

    def _pause(self, doing: str, plan: ReceiverPlan) -> None:
        seconds = self._chance.stream("notices/latency").uniform(*_LATENCY)
        self._runtime.pause(seconds, f"{plan.name}: a notice {doing}")

    def _strikes(self, kind: str, share: float, plan: ReceiverPlan) -> bool:
        return self._chance.strikes(kind, share, site=plan.service, note=plan.name)


class _Sender(HttpsSender):
    """Sends to the services of a seed, after the same checks of the address."""

    def __init__(self, hosts: tuple[str, ...], services: Services) -> None:
        super().__init__(hosts)
        self._services = services

    def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> Answer:
        self.check(url)
        return self._services.post(url, body, headers)


def _answer(status: int, content: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> Answer:
    message = Message()
    for name, value in (headers or {}).items():
        message[name] = value
    return Answer(status, json.dumps(content).encode(), message)


def _key(plan: ReceiverPlan) -> bytes:
    return plan.name.encode().ljust(24, b".")


def _configuration(plan: ReceiverPlan) -> ReceiverConfiguration:
    places: dict[str, Any] = {
        Service.SLACK: {"token": f"xoxb-{plan.name}", "channel": "C0123ABCD"},
        Service.WEBHOOK: {
            "url": f"https://{WEBHOOK_HOST}/{plan.name}",
            "secret": SECRET_PREFIX + base64.b64encode(_key(plan)).decode(),
        },
        Service.SNS: {"topic_arn": plan.topic_arn},
    }[plan.service]
    return ReceiverConfiguration(
        kind=plan.service.value,
        kinds=plan.kinds,
        is_for_all=plan.is_for_all,
        waits_after_minutes=plan.waits_after_minutes,
        **places,
    )
