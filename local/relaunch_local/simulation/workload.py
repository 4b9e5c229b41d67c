"""The workload of a run: pushes, uploads, images, requests and cancellations."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from relaunch.adapters.aws.errors import AwsError
from relaunch.adapters.github.signature import SecretRing
from relaunch.adapters.github.webhook_secrets import DEFAULT_SCOPE
from relaunch.core.jobs.state import JobState
from relaunch.entrypoints.job_api import answer_request
from relaunch.entrypoints.webhook import handle_request
from relaunch.ports import PortError
from relaunch_local.ecs.engine.region import iso
from relaunch_local.simulation.account import SimulatedAccount
from relaunch_local.simulation.aws.lambda_functions import ThrottledError
from relaunch_local.simulation.aws.runtime import KilledError
from relaunch_local.simulation.aws.sqs import DeadLetter
from relaunch_local.simulation.aws.template import ACCOUNT, REGION
from relaunch_local.simulation.checks.groups import is_replaced
from relaunch_local.simulation.deliveries import event_name, payload_of, useless_payload
from relaunch_local.simulation.github_deliveries import GithubDeliveries
from relaunch_local.simulation.scenario import BUCKET, CHECKPOINTS, EVERY_IMAGE, IMAGES, SHARED, PlannedEvent
from relaunch_local.simulation.trigger_scenario import GITHUB_KINDS

_UNREADABLE = (
    ("IntakeQueue", "{"),
    ("IntakeQueue", '{"source": "nobody"}'),
    ("AttemptsQueue", '{"job_id": 7}'),
    ("AttemptsQueue", "[]"),
    ("TaskChangesQueue", '{"detail-type": "ECS Task State Change", "detail": {"lastStatus": 1}}'),
    ("WarningsQueue", '{"detail-type": "EC2 Spot Instance Interruption Warning", "detail": {}}'),
)
# Of the deliveries that start a job: how many come with one that must not.
_USELESS_SHARE = 0.5
# Of the images: how many come from another region or account.
_REPLICATED_SHARE = 0.3

UNREADABLE = frozenset(body for _, body in _UNREADABLE)
"""The messages that no function can read."""


class DeliveryError(Exception):
    """GitHub was answered 503."""


class _UncheckedSignatures(SecretRing):
    """Accepts every signature and reads no secret."""

    def has_signed(self, scope: str, body: bytes, digest: bytes) -> bool:
        del scope, body, digest
        return True

    def find_signing_scope(self, payload: Mapping[str, object]) -> str:
        del payload
        return DEFAULT_SCOPE


class Workload:
    """Sends the events of a scenario."""

    redelivered_after_seconds = (30.0, 900.0)
    share_with_token = 0.5
    """Of the seeds: GitHub is asked for failed deliveries by the sweep, in the others by a person."""

    def __init__(self, account: SimulatedAccount) -> None:
        """Schedule every event."""
        self.account = account
        self.accepted: set[tuple[str, str, int]] = set()
        """(definition, token, occurrence) of every event that the application accepted."""
        self.planned = {key for event in account.scenario.events for key in self._keys(event)}
        self.cancelled: set[str] = set()
        self.cancellations: dict[str, datetime] = {}
        """When the cancellation of each open job was acknowledged."""
        self.dead_letters = 0
        self.deleted_dead_letters: list[DeadLetter] = []
        """Those that somebody deleted, or sent back to where they came from."""
        self.without_checkpoint: set[str] = set()
        """Jobs that are to resume from a checkpoint that was never written."""
        self.last_arrival = account.clock.now()
        """When the last event arrives that EventBridge may deliver hours late."""
        # What a deadline promises is seen of the jobs that nobody cancels.
        self._cancels = 0.1 if account.scenario.has_close_deadlines else 2.0
        self._dice = account.chance.stream("outside")
        self._useless: set[str] = set()
        """The deliveries that must start nothing."""
        self._others = account.chance.stream("outside/others")
        self._secrets = self._make_secrets()
        self.github = GithubDeliveries(account, self.share_with_token)
        self._plan()

    def _plan(self) -> None:
        account = self.account
        dice = self._dice
        account.ecr.digests.update(EVERY_IMAGE)
        starts: dict[str, Callable[[PlannedEvent], None]] = {
            "push": self._push,
            "upload": self._upload,
            "request": self._request,
            "image": self._push_image,
            **dict.fromkeys(GITHUB_KINDS, self._push),
        }
        for event in account.scenario.events:
            self._at(event.at_seconds, lambda event=event: starts[event.kind](event))  # type: ignore[misc]  # mypy cannot infer a lambda with a default
            if event.image_after_seconds is not None:
                pushed_at = event.at_seconds + event.image_after_seconds
                self._at(pushed_at, lambda tag=event.token: self._push_awaited_image(tag))  # type: ignore[misc]
        for _ in range(dice.randint(0, 2)):
            self._at(dice.uniform(0.1, 1.0) * account.scenario.chaos_seconds, self.cancel_any_job)
        if dice.random() < 0.4:
            self._at(dice.uniform(0.0, 1.0) * account.scenario.chaos_seconds, self._send_dead_letter)

    def _keys(self, event: PlannedEvent) -> list[tuple[str, str, int]]:
        every = [each.name for each in self.account.scenario.definitions]
        return [(name, event.token, event.occurrence) for name in ([event.definition] if event.definition else every)]

    def _accept(self, event: PlannedEvent) -> None:
        self.accepted.update(self._keys(event))

    def _do_again(self, fault: str, event: PlannedEvent, action: Callable[[PlannedEvent], None]) -> None:
        """Let somebody make the same push again after a revert, or overwrite an object, at most twice."""
        if event.occurrence < 3 and self.account.chance.strikes(fault, 0.12, note=event.token[:8]):
            again = replace(event, occurrence=event.occurrence + 1)
            self.planned.update(self._keys(again))
            self._at(self.account.chance.stream(fault + "/delay").uniform(1.0, 1_800.0), lambda: action(again))

    def _at(self, seconds: float, action: Callable[[], None]) -> None:
        self.account.clock.call_later(seconds, action)

    def _push(self, event: PlannedEvent) -> None:
        chance = self.account.chance
        body = payload_of(event, self._inputs_of(event))
        if self.account.scenario.has_groups:
            # Which push is newer counts.
            body["repository"]["pushed_at"] = int(self.account.clock.now().timestamp())
        payload = json.dumps(body)
        # GitHub sends the same identifier of a delivery to every webhook.
        delivery = f"delivery-{event.token if 'dispatch' in event.kind else event.token[:8]}-{event.occurrence}"
        self._deliver(event, payload, delivery, "hook-1")
        if event.kind in GITHUB_KINDS and self._others.random() < _USELESS_SHARE:
            self._useless.add(f"useless-{delivery}")
            self._deliver(event, json.dumps(useless_payload(event)), f"useless-{delivery}", "hook-1")
        if chance.strikes("github-redelivered", 0.25, note=event.token[:8]):
            delay = self._dice.uniform(0.1, 3_600.0)
            self._at(delay, lambda: self._deliver(event, payload, delivery, "hook-1"))
        if chance.strikes("github-pushed-twice", 0.2, note=event.token[:8]):
            delay = self._dice.uniform(0.0, 20.0)
            other = delivery if "dispatch" in event.kind else f"other-{delivery}"
            self._at(delay, lambda: self._deliver(event, payload, other, "hook-2"))
        if event.kind != "package":
            self._do_again("github-pushed-again", event, self._push)

    def _inputs_of(self, event: PlannedEvent) -> Mapping[str, str]:
        """Return the inputs that a request or a dispatch names."""
        inputs = next(each.inputs for each in self.account.scenario.every_definition if each.name == event.definition)
        return {"batch-size": str(len(event.token))} if inputs else {}

    def _deliver(self, event: PlannedEvent, payload: str, delivery: str, hook: str) -> None:
        """Send a request to the webhook; without a 202 GitHub is asked for it again later."""
        account = self.account
        headers = {
            "content-type": "application/json",
            "x-github-event": event_name(event.kind),
            "x-github-delivery": delivery,
            "x-github-hook-id": hook,
            "x-hub-signature-256": f"sha256={self._sign(payload)}",
        }
        request: dict[str, object] = {"headers": headers, "body": payload}
        sqs = account._sqs()  # noqa: SLF001 - the webhook's own client

        def enqueue(message: str) -> None:
            sqs.send_message(QueueUrl="IntakeQueue", MessageBody=message)

        def handle() -> None:
            answer = handle_request(request, self._secrets, enqueue, lambda _line: None, iso(account.clock.now()))
            if answer["statusCode"] != 202:
                raise DeliveryError(delivery)

        def again() -> None:
            self._deliver(event, payload, delivery, hook)

        def on_end(_answer: Any, error: BaseException | None) -> None:
            webhook = f"repos/acme/{event.definition}/hooks/{hook.removeprefix('hook-')}"
            self.github.note_answer(webhook, delivery, 202 if error is None else _status_of(error), again)
            if error is not None:
                self._refused(error, again)
            elif delivery not in self._useless:
                self._accept(event)

        account.lambdas.call("github_webhook", handle, on_end, delivery)

    def _refused(self, error: BaseException, again: Callable[[], None]) -> None:
        """Let a person have a delivery made again that the webhook refused, where no sweep does."""
        self.account.chance.note_organic("delivery-refused")
        self.expect("github_webhook", error)
        delay = self._dice.uniform(*self.redelivered_after_seconds)
        if not self.github.has_token:
            self._at(delay, again)

    def _sign(self, _payload: str) -> str:
        """Return a placeholder: a seed's run does not check signatures."""
        return "0" * 64

    def _make_secrets(self) -> SecretRing:
        return _UncheckedSignatures(lambda _stage: ("unchecked", 0.0), lambda: 0.0, 0.0)

    def _upload(self, event: PlannedEvent) -> None:
        folder = f"{event.definition}/" if event.definition else SHARED
        self._create_object(BUCKET, f"{folder}data-{event.token}.bin", event)
        self._create_object(BUCKET, f"{folder}{event.token}.manifest", event)
        self._create_object(CHECKPOINTS, f"{folder}{event.token}.manifest", event)
        self._accept(event)
        self._do_again("object-overwritten", event, self._upload)

    def _create_object(self, bucket: str, key: str, event: PlannedEvent) -> None:
        """Publish an upload; the manifests in BUCKET are what definitions watch, and come amid other objects."""
        detail = {
            "bucket": {"name": bucket},
            "object": {"key": key, "size": 9, "sequencer": f"00{event.occurrence:014X}{event.token.encode().hex()}"},
            "request-id": f"{event.token}-{event.occurrence}",
        }
        self._publish("aws.s3", "Object Created", detail)

    def _push_image(self, event: PlannedEvent) -> None:
        """Push an image whose tag a trigger watches; an event that EventBridge loses was never accepted."""
        tag = f"{event.definition}-{event.token}"
        delay = self._image(tag, f"sha256:{event.occurrence}{event.token:0>63}")
        if delay is None:
            self.planned.difference_update(self._keys(event))
            return
        self.last_arrival = max(self.last_arrival, self.account.clock.now() + timedelta(seconds=delay))
        self._accept(event)
        self._do_again("github-pushed-again", event, self._push_image)

    def _push_awaited_image(self, tag: str) -> None:
        """Push the image that the job of a push waits for, which asks ECR itself if no event comes."""
        self._image(tag, f"sha256:{tag}{tag[:24]}")

    def _image(self, tag: str, digest: str) -> float | None:
        """Push an image, or replicate one; return in how many seconds its event arrives, None if it never does."""
        self.account.ecr.digests[IMAGES, tag] = digest
        image = {"repository-name": IMAGES, "result": "SUCCESS", "image-digest": digest, "image-tag": tag}
        if self.account.chance.stream("replication").random() < _REPLICATED_SHARE:
            # Where it has arrived ("Amazon ECR events and EventBridge", Amazon ECR User Guide).
            source = {"source-account": "444455556666", "source-region": "eu-west-1", "action-type": "REPLICATE"}
            return self._publish("aws.ecr", "ECR Replication Action", {**image, **source})
        # ECR says what was pushed, which its page of sample events has for the archived image alone.
        types = {"manifest-media-type": "application/vnd.oci.image.manifest.v1+json",
                 "artifact-media-type": "application/vnd.oci.image.config.v1+json"}  # fmt: skip
        return self._publish("aws.ecr", "ECR Image Action", {**image, **types, "action-type": "PUSH"})

    def _request(self, event: PlannedEvent) -> None:
        account = self.account
        inputs = self._inputs_of(event)
        given = {"inputs": inputs} if inputs else {}
        request = {"action": "submit", "definition": event.definition, "idempotency_key": event.token, **given}

        def ask() -> None:
            answer = answer_request(request, "", account.deps)
            account.invariants.check("a request that is right is granted", "job" in answer, f"{request}: {answer}")

        account.lambdas.call_asynchronously("job_api", ask, request)
        self._accept(event)

    def cancel_any_job(self) -> None:
        """Cancel an open job."""
        account = self.account
        jobs = account.invariants.jobs
        open_jobs = [job_id for job_id, job in jobs.items() if not job.state.is_final]
        unsettled = [job_id for job_id in open_jobs if jobs[job_id].state in (JobState.LAUNCHING, JobState.STOPPING)]
        if not open_jobs or not account.chance.strikes("user-cancels", self._cancels):
            return
        # Mostly a job that is being launched or stopped, where cancelling is most difficult.
        is_unsettled = bool(unsettled) and self._dice.random() < 0.6
        self._cancel(self._dice.choice(unsettled if is_unsettled else open_jobs))

    def cancel_running_job(self) -> None:
        """Cancel a job that has a task on a machine of our own."""
        account = self.account
        on_machines = [
            job_id
            for job_id, job in account.invariants.jobs.items()
            if job.state in {JobState.LAUNCHING, JobState.RUNNING} and job.current_attempt.task_id
            if job.current_attempt.placement.machine_id
        ]
        if on_machines and account.chance.strikes("user-cancels", self._cancels):
            self._cancel(self._others.choice(on_machines))

    def _cancel(self, job_id: str) -> None:
        account = self.account
        self.cancelled.add(job_id)

        request = {"action": "cancel", "job_id": job_id, "reason": "not needed any more"}

        def on_end(answer: Any, error: BaseException | None) -> None:
            if error is not None:
                self.expect("job_api", error)
            else:
                account.invariants.check("a request that is right is granted", "job" in answer, f"{request}: {answer}")
            if error is not None or "job" not in answer:
                self._at(self._dice.uniform(5.0, 120.0), lambda: self._cancel(job_id))
                return
            state = JobState(answer["job"]["state"])
            job = account.invariants.jobs[job_id]
            is_meant = job.cancel_requested == request["reason"] or job.state.is_final or is_replaced(job)
            account.invariants.check("a cancellation is remembered", is_meant, job_id)
            if not state.is_final or state is JobState.CANCELLED:
                self.cancellations.setdefault(job_id, account.clock.now())

        account.lambdas.call("job_api", lambda: answer_request(request, "", account.deps), on_end, f"cancel {job_id}")

    def expect(self, function: str, error: BaseException) -> None:
        """Let faults be answered by an error, and nothing else."""
        if not isinstance(error, (KilledError, PortError, DeliveryError, ThrottledError, *AwsError)):
            self.account.invariants.unhandled(function, error)

    def _send_dead_letter(self) -> None:
        queue, body = self._dice.choice(_UNREADABLE)
        if self.account.chance.strikes("poison-message", 2.0, note=f"{queue} {body}"):
            self.dead_letters += 1
            self.account.queues.send(queue, body)

    def _publish(self, source: str, detail_type: str, detail: dict[str, Any]) -> float | None:
        account = self.account
        return account.bus.publish(
            {
                "version": "0",
                "id": f"event-{account.simulator.region.ids.uuid()}",
                "source": source,
                "detail-type": detail_type,
                "account": ACCOUNT,
                "region": REGION,
                "time": iso(account.clock.now(), timespec="seconds"),
                "resources": [],
                "detail": detail,
            }
        )


def _status_of(error: BaseException) -> int:
    """Return what GitHub notes of an attempt that failed; Lambda answers 502 for a function that was killed."""
    return 503 if isinstance(error, DeliveryError) else 502
