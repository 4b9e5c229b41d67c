"""The Job controller: what a Job becomes by its pods ("Jobs", "Pod failure policy", Kubernetes documentation).

It knows what a launcher uses: one pod at a time or one for each index, `backoffLimit`, `activeDeadlineSeconds`,
`suspend` and pod failure policies. A pod that is deleted counts as failed where servers track pods by finalizers: as
soon as its deletion begins, or with a failure policy when it has ended. Older ones replace it then, and leave the other
one running when it succeeds. One that is refused (pod_admission) is tried again and again, of which only events tell.
"""

from collections.abc import Mapping
from copy import deepcopy
from datetime import datetime
from typing import Any, Protocol

from relaunch_local.kubernetes.indexed_jobs import give_index, index_of, is_indexed, pod_name_base, write_indices
from relaunch_local.kubernetes.job_rules import with_requests
from relaunch_local.kubernetes.pod_admission import PodAdmission
from relaunch_local.kubernetes.scheduler import is_over
from relaunch_local.kubernetes.state import ClusterState, Document, has_condition, set_condition

TRACKS_PODS = 25
"""The minor version of the first servers that count pods which were deleted (JobTrackingWithFinalizers, beta, on by
default; so it was in 1.23 until 1.23.6, where it was off again as in 1.24: kubernetes#109487, kubernetes#110948)."""
HAS_PREFIXED_LABELS = 27
"""The minor version of the first servers whose labels of pods have a domain too."""
HAS_TARGETS = 31
"""The minor version of the first servers that wait for pods to end before a Job has failed."""
_BACKOFF_SECONDS = 10.0
_LONGEST_BACKOFF_SECONDS = 600.0


class Pods(Protocol):
    """What the controller does with pods."""

    def start_pod(self, pod: Document) -> None:
        """Let a pod that was added be scheduled."""

    def end_pod(self, pod: Document) -> None:
        """Let a pod end, within its own grace period, and remove it."""

    def record_event(self, about: Document, kind: str, reason: str, message: str) -> None:
        """Record an event."""


class JobController:
    """Brings Jobs on; whoever calls it holds the clock's lock."""

    def __init__(self, state: ClusterState, pods: Pods, minor: int) -> None:
        self._state = state
        self._pods = pods
        self._minor = minor
        self.admission = PodAdmission(state, minor)
        """What pods must pass to be created."""
        self.fails_suspended = False
        """Whether the controller sees a pod as failed that it deletes since its Job is suspended, before it is gone:
        failure policies are asked of all pods (getFailJobMessage in pkg/controller/job), so that it may."""
        self._begun: dict[str, datetime] = {}
        self._counted: set[str] = set()
        self._replaced: set[str] = set()
        self._uncounted: set[str] = set()
        self._deleted: set[str] = set()
        self._succeeded: dict[str, set[int]] = {}

    def begin(self, job: Document) -> None:
        """Start a Job that was added, unless it is suspended."""
        job["status"] = {}
        if job["spec"].get("suspend"):
            self._suspend(job)
        else:
            self._start(job)

    def _start(self, job: Document) -> None:
        job["status"]["startTime"] = self._state.now()
        self._begun[job["metadata"]["uid"]] = self._state.clock.now()
        self.watch_deadline(job)
        if not self._is_finished(job):
            self._add_pods(job)

    def follow(self, job: Document, before: Document) -> None:
        """Follow a change of the specification of a Job: it is suspended, or goes on, or has another deadline."""
        is_suspended = bool(job["spec"].get("suspend"))
        if self._is_finished(job):
            return
        if is_suspended and not before.get("suspend"):
            self._suspend(job)
        elif before.get("suspend") and not is_suspended:
            set_condition(job, "Suspended", "False", self._state.now(), ("JobResumed", "Job resumed"))
            self._pods.record_event(job, "Normal", "Resumed", "Job resumed")
            self._start(job)
        elif job["spec"]["parallelism"] == 0:
            self._end_uncounted(job)
        self.watch_deadline(job)

    def _suspend(self, job: Document) -> None:
        """End the pods of a Job, which are not counted, and let its time begin again when it goes on (KEP-2232)."""
        set_condition(job, "Suspended", "True", self._state.now(), ("JobSuspended", "Job suspended"))
        self._pods.record_event(job, "Normal", "Suspended", "Job suspended")
        job["status"].pop("startTime", None)
        self._end_uncounted(job)

    def _end_uncounted(self, job: Document) -> None:
        for pod in self._live_pods(job):
            self._uncounted.add(pod["metadata"]["uid"])
            self._pods.end_pod(pod)
        job["status"]["active"] = len(self._live_pods(job))
        self._state.touch(job)

    def watch_deadline(self, job: Document) -> None:
        """Let a Job fail when its deadline, counted from its start, is over; at once if it is."""
        seconds = job["spec"].get("activeDeadlineSeconds")
        if seconds is None or self._is_finished(job) or job["spec"].get("suspend"):
            return
        left = seconds - self._elapsed(job)
        if left <= 0:
            self._exceed_deadline(job)
        else:
            self._state.clock.call_later(left, lambda: self._exceed_deadline(job))

    def pod_is_deleted(self, pod: Document) -> None:
        """Replace a pod whose deletion begins, as old servers do, or count it as failed.

        Source: isPodFailed in pkg/controller/job; before 1.26, where it has no name of its own, in getStatus. Whatever
        its program ends with, it is not counted again.
        """
        job = self._job_of(pod)
        uid = pod["metadata"]["uid"]
        if job is None or self._is_finished(job) or uid in self._known:
            return
        if self._minor < TRACKS_PODS:
            self._replaced.add(uid)
            self._add_pod(job, index_of(pod) if is_indexed(job) else None)
        elif "podFailurePolicy" not in job["spec"] and not has_condition(job, "FailureTarget"):
            self._deleted.add(uid)
            self._count_failure(job, pod)

    @property
    def _known(self) -> set[str]:
        return self._replaced | self._counted | self._uncounted | self._deleted

    def pod_ended(self, pod: Document) -> None:
        """Count a pod that ended, or was deleted before it ended."""
        job = self._job_of(pod)
        uid = pod["metadata"]["uid"]
        if job is None or self._is_finished(job) or uid in self._counted:
            return
        self._counted.add(uid)
        job["status"]["active"] = len(self._live_pods(job))
        if uid in self._uncounted and not has_condition(job, "FailureTarget"):
            self._fail_suspended(job, pod)
        elif has_condition(job, "FailureTarget"):
            self._finish_failing(job)
        elif uid not in self._deleted:
            self._count(job, pod)
        self._state.touch(job)

    def _count(self, job: Document, pod: Document) -> None:
        if pod["status"].get("phase") == "Succeeded":
            self._count_success(job, pod)
        elif pod["metadata"]["uid"] not in self._replaced or self._is_failure_of_old(job, pod):
            self._count_failure(job, pod)

    @staticmethod
    def _is_failure_of_old(job: Document, pod: Document) -> bool:
        """Return whether old servers count a pod that was deleted: it is seen to fail, and there is no other one yet.

        Source: syncJob in pkg/controller/job, 1.20. What is deleted by force is gone before its kubelet tells its end.
        """
        is_seen = pod["status"].get("phase") == "Failed" and pod["metadata"].get("deletionGracePeriodSeconds") != 0
        return is_seen and int(job["status"]["active"]) < int(job["spec"]["parallelism"])

    def _fail_suspended(self, job: Document, pod: Document) -> None:
        action, why = self._apply_policy(job, pod)
        if self.fails_suspended and action == "FailJob":
            self._fail(job, "PodFailurePolicy", why)

    def remove(self, job: Document) -> None:
        """Remove a Job, and in the background its pods and what else belongs to it."""
        self._state.remove("jobs", job)
        for service in self._state.all("services", job["metadata"]["namespace"]):
            if any(each["uid"] == job["metadata"]["uid"] for each in service["metadata"].get("ownerReferences", ())):
                self._state.remove("services", service)
        for pod in self._pods_of(job):
            self._pods.end_pod(pod)

    def _add_pods(self, job: Document, backoff_seconds: float = _BACKOFF_SECONDS) -> None:
        """Make the pods that a Job lacks: one, or one for each index that has not succeeded."""
        # One that is being deleted, and counts already, is no pod of the Job any more (IsPodActive, pkg/controller).
        gone = self._replaced | self._deleted
        live = [each for each in self._live_pods(job) if each["metadata"]["uid"] not in gone]
        if not is_indexed(job):
            if not live:
                self._add_pod(job, None, backoff_seconds)
            return
        there = {index_of(each) for each in live} | self._succeeded.get(job["metadata"]["uid"], set())
        for index in range(job["spec"]["completions"]):
            if index not in there and not self._add_pod(job, index, backoff_seconds):
                # What refuses one refuses the others: they are not tried ("slowStartBatch").
                return

    def _add_pod(self, job: Document, index: int | None, backoff_seconds: float = _BACKOFF_SECONDS) -> bool:
        """Make a pod; return whether it was made."""
        if job["spec"]["parallelism"] == 0:
            return False
        template = deepcopy(job["spec"]["template"])
        name = job["metadata"]["name"]
        owner = {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "name": name,
            "uid": job["metadata"]["uid"],
            "controller": True,
        }
        metadata = {
            **template["metadata"],
            "name": f"{pod_name_base(name, index)}{self._state.suffix()}",
            "ownerReferences": [owner],
        }
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": with_requests(template["spec"])}
        if index is not None:
            give_index(pod, name, index, self._minor)
        if refusal := self.admission.refusal(job["metadata"]["namespace"], pod):
            self._pods.record_event(job, "Warning", "FailedCreate", f"Error creating: {refusal}")
            longer = min(2 * backoff_seconds, _LONGEST_BACKOFF_SECONDS)
            self._state.clock.call_later(backoff_seconds, lambda: self._replace_pod(job, longer))
            return False
        self._state.add("pods", job["metadata"]["namespace"], pod | {"status": {"phase": "Pending"}})
        job["status"]["active"] = 1 if index is None else len(self._live_pods(job))
        self._state.touch(job)
        self._pods.start_pod(self._state.get("pods", job["metadata"]["namespace"], metadata["name"]))
        return True

    def _count_success(self, job: Document, pod: Document) -> None:
        """Complete a Job by the first pod that succeeds, or by one for each index."""
        index = index_of(pod) if is_indexed(job) else None
        if index is None:
            self._complete(job)
            return
        succeeded = self._succeeded.setdefault(job["metadata"]["uid"], set())
        succeeded.add(index)
        job["status"] |= {"succeeded": len(succeeded), "completedIndexes": write_indices(succeeded)}
        if len(succeeded) == job["spec"]["completions"]:
            self._complete(job)

    def _count_failure(self, job: Document, pod: Document) -> None:
        action, why = self._apply_policy(job, pod)
        if action == "FailJob":
            self._fail(job, "PodFailurePolicy", why)
            return
        if action != "Ignore":
            job["status"]["failed"] = job["status"].get("failed", 0) + 1
            if job["status"]["failed"] > job["spec"]["backoffLimit"]:
                self._fail(job, "BackoffLimitExceeded", "Job has reached the specified backoff limit")
                return
        self._state.clock.call_later(_BACKOFF_SECONDS, lambda: self._replace_pod(job))

    def _replace_pod(self, job: Document, backoff_seconds: float = _BACKOFF_SECONDS) -> None:
        is_there = self._state.find("jobs", job["metadata"]["namespace"], job["metadata"]["name"]) is job
        is_ending = self._is_finished(job) or has_condition(job, "FailureTarget") or job["spec"].get("suspend")
        if is_there and not is_ending:
            self._add_pods(job, backoff_seconds)

    def _apply_policy(self, job: Document, pod: Document) -> tuple[str, str]:
        """Return the action of the first rule that matches, and the message of it; empty if none does."""
        rules = (job["spec"].get("podFailurePolicy") or {}).get("rules") or ()
        place = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
        for number, rule in enumerate(rules):
            said = _match_rule(rule, pod, place)
            if said:
                return str(rule["action"]), f"{said} matching {rule['action']} rule at index {number}"
        return "", ""

    def _elapsed(self, job: Document) -> float:
        """Return how long a Job has been active, in seconds of the clock's speed."""
        now = self._state.clock.now()
        begun = self._begun.setdefault(job["metadata"]["uid"], now)
        return (now - begun).total_seconds() * self._state.clock.speed

    def _exceed_deadline(self, job: Document) -> None:
        seconds = job["spec"].get("activeDeadlineSeconds")
        is_there = self._state.find("jobs", job["metadata"]["namespace"], job["metadata"]["name"]) is job
        # The deadline may have been changed since.
        if job["spec"].get("suspend"):
            return
        if is_there and not self._is_finished(job) and seconds is not None and seconds <= self._elapsed(job) + 0.001:
            self._fail(job, "DeadlineExceeded", "Job was active longer than specified deadline")

    def _fail(self, job: Document, reason: str, message: str) -> None:
        if has_condition(job, "FailureTarget"):
            return
        target = "FailureTarget" if self._minor >= HAS_TARGETS else "Failed"
        set_condition(job, target, "True", self._state.now(), (reason, message))
        if target == "Failed":
            self._pods.record_event(job, "Warning", reason, message)
        self._state.touch(job)
        for pod in self._live_pods(job):
            if pod["metadata"]["uid"] not in self._deleted:
                self._pods.end_pod(pod)
        self._finish_failing(job)

    def _finish_failing(self, job: Document) -> None:
        target = next((e for e in job["status"].get("conditions", ()) if e["type"] == "FailureTarget"), None)
        job["status"]["active"] = len(self._live_pods(job))
        if target is not None and not job["status"]["active"]:
            set_condition(job, "Failed", "True", self._state.now(), (target["reason"], target["message"]))
            self._pods.record_event(job, "Warning", target["reason"], target["message"])
        self._state.touch(job)

    def _complete(self, job: Document) -> None:
        at = self._state.now()
        job["status"] |= {"succeeded": job["status"].get("succeeded", 1), "completionTime": at}
        why = ("CompletionsReached", "Reached expected number of succeeded pods")
        if self._minor >= HAS_TARGETS:
            set_condition(job, "SuccessCriteriaMet", "True", at, why)
        set_condition(job, "Complete", "True", at, why if self._minor >= HAS_TARGETS else ("", ""))
        self._pods.record_event(job, "Normal", "Completed", "Job completed")

    def _job_of(self, pod: Document) -> Document | None:
        for owner in pod["metadata"].get("ownerReferences", ()):
            job = self._state.find("jobs", pod["metadata"]["namespace"], owner["name"])
            if job is not None and job["metadata"]["uid"] == owner["uid"]:
                return job
        return None

    def _pods_of(self, job: Document) -> list[Document]:
        uid = job["metadata"]["uid"]
        pods = self._state.all("pods", job["metadata"]["namespace"])
        return [each for each in pods if any(o["uid"] == uid for o in each["metadata"].get("ownerReferences", ()))]

    def _live_pods(self, job: Document) -> list[Document]:
        return [each for each in self._pods_of(job) if not is_over(each)]

    def _is_finished(self, job: Document) -> bool:
        return has_condition(job, "Complete", "Failed")


def select_pods(job: Document, minor: int) -> None:
    """Let a Job that was added find its pods: by its UID, which is a label of their template.

    Source: generateSelector in pkg/registry/batch/job/strategy.go.
    """
    labels = _pod_labels(job, minor)
    template = job["spec"]["template"].setdefault("metadata", {})
    template["labels"] = {**(template.get("labels") or {}), **labels}
    key = "batch.kubernetes.io/controller-uid" if minor >= HAS_PREFIXED_LABELS else "controller-uid"
    job["spec"]["selector"] = {"matchLabels": {key: labels[key]}}


def _pod_labels(job: Document, minor: int) -> dict[str, str]:
    labels = {"controller-uid": job["metadata"]["uid"], "job-name": job["metadata"]["name"]}
    if minor >= HAS_PREFIXED_LABELS:
        labels |= {f"batch.kubernetes.io/{key}": value for key, value in labels.items()}
    return labels


def _match_rule(rule: Mapping[str, Any], pod: Document, place: str) -> str:
    for pattern in rule.get("onPodConditions") or ():
        if any(
            each["type"] == pattern["type"] and each["status"] == pattern.get("status", "True")
            for each in pod["status"].get("conditions", ())
        ):
            return f"Pod {place} has condition {pattern['type']}"
    codes = rule.get("onExitCodes")
    if codes is None:
        return ""
    for container in pod["status"].get("containerStatuses") or ():
        ended = container["state"].get("terminated")
        wanted = codes.get("containerName") in {None, container["name"]}
        # A container that succeeded matches no rule.
        if ended is None or not wanted or ended["exitCode"] == 0:
            continue
        if (ended["exitCode"] in codes["values"]) is (codes["operator"] == "In"):
            return f"Container {container['name']} for pod {place} failed with exit code {ended['exitCode']}"
    return ""
