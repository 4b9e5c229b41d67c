"""What happens outside the application: pushes, uploads, images, callers, and people who cancel."""

import json
from collections.abc import Callable
from datetime import datetime
from typing import Any

from relaunch.core.jobs.job import JobState
from relaunch.entrypoints.job_api import answer_request
from relaunch.entrypoints.webhook import handle_request
from relaunch_local.ecs.engine.region import iso
from relaunch_local.simulation.aws.account import Cloud
from relaunch_local.simulation.aws.template import ACCOUNT, REGION
from relaunch_local.simulation.scenario import BUCKET, IMAGES, SHARED, PlannedEvent

_POISON = (
    ("IntakeQueue", "{"),
    ("IntakeQueue", '{"source": "nobody"}'),
    ("AttemptsQueue", '{"job_id": 7}'),
    ("AttemptsQueue", "[]"),
    ("TaskChangesQueue", '{"detail-type": "ECS Task State Change", "detail": {"lastStatus": 1}}'),
    ("WarningsQueue", '{"detail-type": "EC2 Spot Instance Interruption Warning", "detail": {}}'),
)
_NO_COMMIT = "0" * 40


class DeliveryError(Exception):
    """GitHub was answered 503."""


class Outside:
    """Starts what a scenario plans."""

    redelivered_after_seconds = (30.0, 900.0)

    def __init__(self, cloud: Cloud) -> None:
        """Plan everything on the clock."""
        self.cloud = cloud
        self.accepted: set[tuple[str, str]] = set()
        """(definition, token) of every event that the application took."""
        self.planned = {
            (name, event.token) for event in cloud.scenario.events for name in self._definitions_of(cloud, event)
        }
        self.cancelled: set[str] = set()
        self.cancellations: dict[str, datetime] = {}
        """Since when each job that was not over is to be cancelled, and its caller knows."""
        self.dead_letters = 0
        self._dice = cloud.chance.stream("outside")
        self._plan()

    def _plan(self) -> None:
        cloud, dice = self.cloud, self._dice
        cloud.ecr.digests[IMAGES, "latest"] = f"sha256:{'1' * 64}"
        starts: dict[str, Callable[[PlannedEvent], None]] = {
            "push": self._push,
            "upload": self._upload,
            "request": self._request,
        }
        for event in cloud.scenario.events:
            self._at(event.at_seconds, lambda event=event: starts[event.kind](event))  # type: ignore[misc]  # mypy cannot infer a lambda with a default
            if event.image_after_seconds is not None:
                self._at(event.at_seconds + event.image_after_seconds, lambda tag=event.token: self._image(tag))  # type: ignore[misc]
        for _ in range(dice.randint(0, 2)):
            self._at(dice.uniform(0.1, 1.0) * cloud.scenario.chaos_seconds, self.cancel_somebody)
        if dice.random() < 0.4:
            self._at(dice.uniform(0.0, 1.0) * cloud.scenario.chaos_seconds, self._send_dead_letter)

    @staticmethod
    def _definitions_of(cloud: Cloud, event: PlannedEvent) -> list[str]:
        return [event.definition] if event.definition else [each.name for each in cloud.scenario.definitions]

    def _accept(self, event: PlannedEvent) -> None:
        self.accepted.update((name, event.token) for name in self._definitions_of(self.cloud, event))

    def _at(self, seconds: float, action: Callable[[], None]) -> None:
        self.cloud.clock.call_later(seconds, action)

    def _push(self, event: PlannedEvent) -> None:
        chance = self.cloud.chance
        payload = push_payload(event)
        self._deliver(event, payload, f"delivery-{event.token[:8]}", "hook-1")
        if chance.strikes("github-redelivered", 0.25, note=event.token[:8]):
            delay = self._dice.uniform(0.1, 3_600.0)
            self._at(delay, lambda: self._deliver(event, payload, f"delivery-{event.token[:8]}", "hook-1"))
        if chance.strikes("github-pushed-twice", 0.2, note=event.token[:8]):
            delay = self._dice.uniform(0.0, 20.0)
            self._at(delay, lambda: self._deliver(event, payload, f"other-{event.token[:8]}", "hook-2"))

    def _deliver(self, event: PlannedEvent, payload: str, delivery: str, hook: str) -> None:
        """One request to the webhook's URL; what is not answered 202 is delivered again by hand, later."""
        cloud = self.cloud
        headers = {
            "content-type": "application/json",
            "x-github-event": "push",
            "x-github-delivery": delivery,
            "x-github-hook-id": hook,
            "x-hub-signature-256": f"sha256={self._sign(payload)}",
        }
        request: dict[str, object] = {"headers": headers, "body": payload}
        sqs = cloud._sqs()  # noqa: SLF001 - the webhook's own client

        def enqueue(message: str) -> None:
            sqs.send_message(QueueUrl="IntakeQueue", MessageBody=message)

        def handle() -> None:
            answer = handle_request(request, self._has_signed, enqueue, lambda _line: None, iso(cloud.clock.now()))
            if answer["statusCode"] != 202:
                raise DeliveryError(delivery)

        def on_end(_answer: Any, error: BaseException | None) -> None:
            if error is not None:
                delay = self._dice.uniform(*self.redelivered_after_seconds)
                self._at(delay, lambda: self._deliver(event, payload, delivery, hook))
            else:
                self._accept(event)

        cloud.lambdas.call("github_webhook", handle, on_end)

    def _sign(self, _payload: str) -> str:
        """A signature; none is made in a seed's run, where none is checked either."""
        return "0" * 64

    def _has_signed(self, _body: bytes, _digest: bytes) -> bool:
        return True

    def _upload(self, event: PlannedEvent) -> None:
        folder = f"{event.definition}/" if event.definition else SHARED
        key = f"{folder}{event.token}.manifest"
        detail = {
            "bucket": {"name": BUCKET},
            "object": {"key": key, "size": 9, "sequencer": f"00{len(self.accepted):014X}{event.token.encode().hex()}"},
            "request-id": event.token,
        }
        self._publish("aws.s3", "Object Created", detail)
        self._accept(event)

    def _image(self, tag: str) -> None:
        digest = f"sha256:{tag}{tag[:24]}"
        self.cloud.ecr.digests[IMAGES, tag] = digest
        detail = {
            "repository-name": IMAGES,
            "action-type": "PUSH",
            "result": "SUCCESS",
            "image-digest": digest,
            "image-tag": tag,
        }
        self._publish("aws.ecr", "ECR Image Action", detail)

    def _request(self, event: PlannedEvent) -> None:
        cloud = self.cloud
        request = {"action": "submit", "definition": event.definition, "idempotency_key": event.token}
        cloud.lambdas.call_asynchronously("job_api", lambda: answer_request(request, "", cloud.deps), event.token)
        self._accept(event)

    def cancel_somebody(self) -> None:
        """Let somebody cancel a job that is not over."""
        cloud = self.cloud
        jobs = cloud.invariants.jobs
        open_jobs = [job_id for job_id, job in jobs.items() if not job.state.is_final]
        unsettled = [job_id for job_id in open_jobs if jobs[job_id].state in (JobState.LAUNCHING, JobState.STOPPING)]
        if not open_jobs or not cloud.chance.strikes("user-cancels", 2.0):
            return
        # Who thinks better of it mostly does so early, or when something is about to be lost anyway.
        is_unsettled = bool(unsettled) and self._dice.random() < 0.6
        self._cancel(self._dice.choice(unsettled if is_unsettled else open_jobs))

    def _cancel(self, job_id: str) -> None:
        cloud = self.cloud
        self.cancelled.add(job_id)

        request = {"action": "cancel", "job_id": job_id, "reason": "not needed any more"}

        def on_end(answer: Any, error: BaseException | None) -> None:
            if error is not None:
                self._at(self._dice.uniform(5.0, 120.0), lambda: self._cancel(job_id))
                return
            state = JobState(answer["job"]["state"])
            if not state.is_final or state is JobState.CANCELLED:
                self.cancellations.setdefault(job_id, cloud.clock.now())

        cloud.lambdas.call("job_api", lambda: answer_request(request, "", cloud.deps), on_end)

    def _send_dead_letter(self) -> None:
        queue, body = self._dice.choice(_POISON)
        if self.cloud.chance.strikes("poison-message", 2.0, note=f"{queue} {body}"):
            self.dead_letters += 1
            self.cloud.queues.send(queue, body)

    def _publish(self, source: str, detail_type: str, detail: dict[str, Any]) -> None:
        cloud = self.cloud
        cloud.bus.publish(
            {
                "version": "0",
                "id": f"event-{cloud.simulator.region.ids.uuid()}",
                "source": source,
                "detail-type": detail_type,
                "account": ACCOUNT,
                "region": REGION,
                "time": iso(cloud.clock.now(), timespec="seconds"),
                "resources": [],
                "detail": detail,
            }
        )


def push_payload(event: PlannedEvent) -> str:
    """The body of a push to main."""
    commit = {"id": event.token, "added": ["train/a.py"], "modified": [], "removed": []}
    return json.dumps(
        {
            "ref": "refs/heads/main",
            "before": _NO_COMMIT[:-1] + "1",
            "after": event.token,
            "created": False,
            "deleted": False,
            "forced": False,
            "head_commit": commit,
            "commits": [commit],
            "repository": {"id": 1, "full_name": f"acme/{event.definition}", "fork": False},
            "sender": {"login": "ada", "id": 2},
        }
    )
