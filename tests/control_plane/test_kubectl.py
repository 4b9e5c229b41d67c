"""The same commands of kubectl to a real server and to the one of our own on loopback: they do and say the same.

kubectl is that of the programs (`control_plane.programs`). Up to 1.26 it validates by schemas that our server does not
describe, so that it must not.
"""

import json
import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from control_plane.jobs import make_job
from control_plane.namespaces import Namespace
from control_plane.waiting import wait_for
from fakes.held_processes import HeldProcesses
from relaunch_local.control_plane.programs import find_programs
from relaunch_local.ecs.clock import Clock
from relaunch_local.kubernetes.cluster import KubernetesCluster
from relaunch_local.kubernetes.server import KubernetesServer

pytestmark = pytest.mark.kubernetes

JOB = "cuda-sample"
# Ages, and what is drawn: parts of names, UIDs.
_DRAWN = re.compile(
    r"\b[0-9]+(?:m[0-9]+)?[sm]\b|(?<=cuda-sample-)[a-z0-9]{5}\b|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
)


@dataclass(frozen=True)
class Kubectl:
    """kubectl with a kubeconfig; its home is a folder of the test's."""

    program: Path
    kubeconfig: Path
    namespace: str

    def __call__(self, *arguments: str) -> tuple[int, str]:
        """Return the exit code and what was said, without ages and what is drawn."""
        environment = {"KUBECONFIG": str(self.kubeconfig), "HOME": str(self.kubeconfig.parent), "PATH": os.defpath}
        command = [str(self.program), "--namespace", self.namespace, *arguments]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
        said = _DRAWN.sub("*", f"{done.stdout}{done.stderr}".replace(self.namespace, "NAMESPACE"))
        return done.returncode, re.sub(r" +", " ", said)


@dataclass(frozen=True)
class Both:
    """kubectl to both servers."""

    real: Kubectl
    ours: Kubectl

    def compare(self, *arguments: str) -> tuple[int, str]:
        """Run a command on both, and check that they do and say the same; return that."""
        real = self.real(*arguments)
        assert self.ours(*arguments) == real
        return real


@pytest.fixture
def both(namespace: Namespace, tmp_path: Path) -> Iterator[Both]:
    programs = find_programs(os.environ)
    assert programs is not None
    cluster = KubernetesCluster(Clock(), HeldProcesses(), minor=namespace.plane.version.minor)
    cluster.add_namespace(namespace.name)
    server = KubernetesServer(cluster)
    server.start()
    files = {name: tmp_path / name / "kubeconfig" for name in ("real", "ours")}
    for file in files.values():
        file.parent.mkdir()
    files["real"].write_text(json.dumps(namespace.plane.kubeconfig(namespace.name, namespace.plane.admin_token)))
    files["ours"].write_text(server.kubeconfig(namespace.name))
    made = {name: Kubectl(programs / "kubectl", file, namespace.name) for name, file in files.items()}
    yield Both(made["real"], made["ours"])
    server.close()


@pytest.fixture
def manifest(tmp_path: Path) -> Path:
    """A Job whose pod no scheduler sees to, so that both servers are still when they are asked."""
    file = tmp_path / "job.json"
    file.write_text(json.dumps(make_job(pod={"schedulerName": "nobody"})))
    return file


def test_kubectl_creates_shows_selects_applies_and_deletes_alike(
    both: Both, manifest: Path, namespace: Namespace
) -> None:
    file = ("-f", str(manifest), "--validate=false")
    assert both.compare("create", *file) == (0, "job.batch/cuda-sample created\n")
    namespace.started(JOB)
    namespace.pod(JOB)

    assert both.compare("create", *file)[0] == 1
    both.compare("get", "jobs,pods")
    both.compare("get", "jobs", "-o", "wide")
    both.compare("get", "jobs", "-l", "app=other")
    both.compare("get", "pods", "-l", f"job-name={JOB}", "--field-selector", "status.phase=Pending")
    both.compare("get", "job", "nobody")
    both.compare("annotate", "job", JOB, "a=b")
    for _ in range(2):
        both.compare("apply", *file)
    both.compare(
        "get", "job", JOB, "-o", "jsonpath={.metadata.annotations.a} {.spec.selector} {.spec.template.metadata.labels}"
    )
    both.compare("patch", "job", JOB, "-p", '{"spec": {"completions": 2}}')
    both.compare("delete", "job", JOB)
    wait_for("deletion", lambda: both.real("get", "pods") == both.ours("get", "pods"))


def test_kubectl_describes_a_job_alike(both: Both, manifest: Path, namespace: Namespace) -> None:
    both.compare("create", "-f", str(manifest), "--validate=false")
    namespace.started(JOB)
    namespace.pod(JOB)

    real, ours = (each("describe", "job", JOB)[1].partition("Events:")[0] for each in (both.real, both.ours))

    # When it was is of two clocks.
    assert re.sub(r"Start Time:.*", "", ours) == re.sub(r"Start Time:.*", "", real)


def test_kubectl_waits_for_a_change_alike(both: Both, manifest: Path, namespace: Namespace) -> None:
    both.compare("create", "-f", str(manifest), "--validate=false")
    namespace.started(JOB)
    namespace.pod(JOB)
    both.compare("patch", "job", JOB, "-p", '{"spec": {"activeDeadlineSeconds": 1}}')

    assert both.real("wait", "--for=condition=failed", f"job/{JOB}", "--timeout=60s") == (
        0,
        "job.batch/cuda-sample condition met\n",
    )
