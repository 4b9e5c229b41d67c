"""Compares our client with the official one of Kubernetes (Apache-2.0) on a real API server: `make bench-kubernetes`.

The official client is installed in a separate environment. Both create the same Jobs one by one, list them until all
have finished, with pages of the same size and the same pauses, and delete them one by one; each in a fresh process, in
turn, on one control plane with a simulated node. What Relaunch does, with the pods of all Jobs beside them, is a third
case. Requests are counted by the API server's audit log.
"""

import json
import os
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import httpx

from benchmarks.errors import NotMeasurableError
from benchmarks.fresh_process import own_environment
from benchmarks.peers import Peer, run
from benchmarks.session import Session, rotated
from benchmarks.tables import Cell, Table, median
from relaunch.adapters.kubernetes.manifest import build_job
from relaunch.core.definitions.accelerator import GpuRequirement, PurchaseOption
from relaunch.core.definitions.kubernetes_workload import KubernetesWorkload
from relaunch.core.definitions.targets import Target
from relaunch.core.jobs.attempt import AttemptKey
from relaunch.core.launches.launch import LaunchRequest
from relaunch.core.offerings.offering import OfferingKey
from relaunch_local.control_plane.kubelet import Behaviour, Kubelets
from relaunch_local.control_plane.plane import ControlPlane, running_control_plane
from relaunch_local.control_plane.programs import ProgramsMissingError, find_programs
from relaunch_local.repository import REPOSITORY

INTERPRETER = REPOSITORY / ".venv-kubernetes" / "bin" / "python"
JOBS = 200
RUN_SECONDS = 1.0
MAX_ROUNDS = 3
STACK = "bench"
_ACCOUNT_SECONDS = 5.0
_AUDIT = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [{"level": "Metadata", "userGroups": ["system:serviceaccounts"]}, {"level": "None"}],
}
_BEGIN = """
import json, os, resource, sys, time

began = time.perf_counter()
asked = json.loads(sys.stdin.read())
jobs, names = asked["jobs"], [each["metadata"]["name"] for each in asked["jobs"]]

def is_over(conditions):
    return any(each.type in ("Complete", "Failed") and each.status == "True" for each in conditions or ())
"""
_MEASURE = """
imported = time.perf_counter()
for job in jobs:
    create(job)
created = time.perf_counter()
while finished() < len(jobs):
    time.sleep(0.5)
followed = time.perf_counter()
for name in names:
    delete(name)
deleted = time.perf_counter()
usage = resource.getrusage(resource.RUSAGE_SELF)
peak = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(json.dumps({"import": imported - began, "create": created - imported, "follow": followed - created,
                  "delete": deleted - followed, "processor": usage.ru_utime + usage.ru_stime, "peak": peak / 1024}))
"""
_OURS = """
from relaunch.adapters.kubernetes.api.client import KubernetesClient
from relaunch.adapters.kubernetes.api.connection import Connection
from relaunch.adapters.kubernetes.api.kubeconfig import read_kubeconfig

access = read_kubeconfig(json.dumps(asked["kubeconfig"]))
client = KubernetesClient(Connection(lambda: access))
create, delete = client.create_job, client.delete_job
"""
CLIENT = f"""{_BEGIN}{_OURS}
def finished():
    return sum(is_over(each.status.conditions) for page in client.list_jobs("relaunch/stack=bench") for each in page)
{_MEASURE}"""
TARGET = f"""{_BEGIN}{_OURS}
from benchmarks.kubernetes_client import STACK, request_of
from relaunch.adapters.kubernetes.target import kubernetes_target
from relaunch.core.definitions.targets import Target
from relaunch.core.launches.launch import TaskPhase

target = kubernetes_target(client, Target.ACK, STACK)
jobs = list(range(len(jobs)))

def create(number):
    target.launch(request_of(number))

def finished():
    return sum(task is not None and task.phase is TaskPhase.STOPPED for task in target.describe(names).values())
{_MEASURE}"""
OFFICIAL = f"""{_BEGIN}
from kubernetes import client, config

configuration = client.Configuration()
config.load_kube_config_from_dict(asked["kubeconfig"], client_configuration=configuration)
api, namespace = client.BatchV1Api(client.ApiClient(configuration)), asked["namespace"]

def create(job):
    api.create_namespaced_job(namespace, job)

def finished():
    count, token = 0, None
    while True:
        page = api.list_namespaced_job(namespace, label_selector="relaunch/stack=bench", limit=100, _continue=token)
        count += sum(is_over(each.status.conditions) for each in page.items)
        token = page.metadata._continue
        if not token:
            return count

def delete(name):
    api.delete_namespaced_job(name, namespace, propagation_policy="Background")
{_MEASURE}"""


def measure(session: Session) -> list[Table]:
    """Measure all.

    Raises:
        NotMeasurableError: the official client or the control plane's programs are missing, or a case failed.
    """
    try:
        programs = find_programs(os.environ)
    except ProgramsMissingError as error:
        raise NotMeasurableError(str(error)) from error
    if not INTERPRETER.exists() or programs is None:
        raise NotMeasurableError(
            "the official client or the programs of a control plane are missing: make bench-kubernetes"
        )
    environment = own_environment()
    peers = (
        Peer("official client", str(INTERPRETER), OFFICIAL, {"PATH": os.environ["PATH"], "HOME": "/nonexistent"}),
        Peer("our client", sys.executable, CLIENT, environment),
        Peer("our target, with pods", sys.executable, TARGET, environment),
    )
    rounds = min(session.rounds, MAX_ROUNDS)
    results: dict[str, list[dict[str, Any]]] = {peer.name: [] for peer in peers}
    with ExitStack() as stack:
        plane = stack.enter_context(running_control_plane(programs, audit_policy=_AUDIT))
        api = stack.enter_context(plane.open_http())
        kubelets = stack.enter_context(closing(Kubelets(plane, Behaviour(run_seconds=RUN_SECONDS))))
        kubelets.add_node("node", {"nvidia.com/gpu": str(JOBS), "pods": str(2 * JOBS)})
        for number in range(rounds):
            for position, peer in enumerate(rotated(peers, number)):
                results[peer.name].append(_measure_peer(peer, plane, api, f"bench-{number}-{position}"))
    return [_table(plane.version.git_version, results, rounds)]


def request_of(number: int) -> LaunchRequest:
    """Return the request of the Job of a number."""
    return LaunchRequest(
        attempt=AttemptKey(f"job-{number:03}", 1),
        placement_number=1,
        revision_arn="",
        container="main",
        command=("python", "-m", "train"),
        environment={"RELAUNCH_JOB_ID": f"job-{number:03}", "RELAUNCH_ATTEMPT": "1"},
        offering=OfferingKey("ack", None, PurchaseOption.ON_DEMAND),
        workload=KubernetesWorkload("registry.example.com/vision:v1"),
        gpu=GpuRequirement(),
    )


def _measure_peer(peer: Peer, plane: ControlPlane, api: httpx.Client, namespace: str) -> dict[str, Any]:
    with _namespace(api, namespace) as token:
        asked = {
            "namespace": namespace,
            "kubeconfig": plane.kubeconfig(namespace, token),
            "jobs": [build_job(request_of(number), Target.ACK, STACK) for number in range(JOBS)],
        }
        answer = run(peer, json.dumps(asked))
    measured: dict[str, Any] = json.loads(answer.splitlines()[-1])
    return measured | {"calls": _count_calls(plane.folder / "audit.log", namespace)}


@contextmanager
def _namespace(api: httpx.Client, name: str) -> Iterator[str]:
    """Create a namespace, yield the token of an account that may change everything in it, and delete it."""
    rbac = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{name}/rolebindings"
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
    subject = {"kind": "ServiceAccount", "name": "bench", "namespace": name}
    accounts = f"/api/v1/namespaces/{name}/serviceaccounts"
    for path, document in (
        ("/api/v1/namespaces", {"metadata": {"name": name}}),
        (accounts, {"metadata": {"name": "bench"}}),
        (rbac, {"metadata": {"name": "bench"}, "roleRef": reference, "subjects": [subject]}),
    ):
        api.post(path, json=document).raise_for_status()
    # Until a controller has made its token, pods of old servers are refused.
    deadline = time.monotonic() + _ACCOUNT_SECONDS
    while not api.get(f"{accounts}/bench").raise_for_status().json().get("secrets") and time.monotonic() < deadline:
        time.sleep(0.1)
    asked = {"spec": {"expirationSeconds": 3600}}
    yield str(api.post(f"{accounts}/bench/token", json=asked).raise_for_status().json()["status"]["token"])
    api.delete(f"/api/v1/namespaces/{name}").raise_for_status()


def _count_calls(log: Path, namespace: str) -> int:
    user = f"system:serviceaccount:{namespace}:bench"
    with log.open(encoding="utf-8") as lines:
        return sum(json.loads(line)["user"]["username"] == user for line in lines)


def _table(version: str, results: Mapping[str, list[dict[str, Any]]], rounds: int) -> Table:
    columns = ("import", "create", "follow", "delete", "processor", "peak")
    rows: list[tuple[Cell, ...]] = [
        (
            name,
            *(median(float(each[key]) for each in of_case) for key in columns),
            round(median(e["calls"] for e in of_case)),
        )
        for name, of_case in results.items()
    ]
    return Table(
        f"{JOBS} Jobs created, followed to their end and deleted; Kubernetes {version}, {rounds} processes each",
        ("case", "import s", "create s", "follow s", "delete s", "processor s", "peak MiB", "calls"),
        rows,
        (f"Containers run for {RUN_SECONDS:.0f} s; node, API server and case share the processors of this machine.",),
    )
