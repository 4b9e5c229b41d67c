"""Runs etcd, kube-apiserver, kube-controller-manager and kube-scheduler on free ports of loopback.

They end with this process, however it ends. Who calls them has a token or a certificate, and knows their authority.
"""

import base64
import json
import secrets
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from relaunch.adapters.kubernetes.api.connection import tls_context
from relaunch.adapters.kubernetes.api.kubeconfig import ClusterAccess
from relaunch.adapters.kubernetes.api.models import ServerVersion
from relaunch_local.control_plane.loopback_service import LoopbackService
from relaunch_local.control_plane.shared_gpus import CardScheduler, JobAdmission, webhook_configuration
from relaunch_local.kubernetes.ack_rules import MEMORY
from relaunch_local.kubernetes.certificates import CertificateAuthority
from relaunch_local.stack.emulator import LOOPBACK, free_port
from relaunch_local.stack.process_guard import GuardedProcess, start_guarded

START_SECONDS = 300.0
LOST_AFTER_SECONDS = 20
"""A node is lost when its kubelet has been silent for so long; by default servers wait for 40 s."""
ADMIN = "relaunch-admin"

_POLL_SECONDS = 0.1
# Per second, of controllers and scheduler: by default they send 20 to 50, and tests wait for them.
_REQUESTS = 500
_ATTEMPTS = 3
_CONTROLLERS = (
    *("job", "podgc", "garbagecollector", "namespace", "nodelifecycle", "resourcequota", "ttl-after-finished"),
    *("serviceaccount", "serviceaccount-token", "root-ca-cert-publisher"),
)


class ControlPlaneError(Exception):
    """A program did not start; the message has the end of its log."""


@dataclass(frozen=True)
class ControlPlane:
    """A running control plane without nodes."""

    url: str
    etcd_url: str
    authority: CertificateAuthority
    version: ServerVersion
    admin_token: str
    admission: JobAdmission
    folder: Path

    def access(self, namespace: str = "", *, token: str = "", user: str = "") -> ClusterAccess:
        """Return the access of a token, of a user by a client certificate, or else of the administrator."""
        if user:
            issued = self.authority.issue_client(user)
            certificate = issued.certificate
            key = issued.key
        else:
            certificate = ""
            key = ""
        return ClusterAccess(
            server=self.url,
            certificate_authority=self.authority.certificate,
            namespace=namespace,
            token=token or ("" if user else self.admin_token),
            client_certificate=certificate,
            client_key=key,
        )

    def open_http(self, access: ClusterAccess | None = None) -> httpx.Client:
        """Return a client of the API for what Relaunch's own does not do; the administrator's by default."""
        known = access or self.access()
        headers = {"Authorization": f"Bearer {known.token}"} if known.token else {}
        return httpx.Client(
            base_url=self.url, verify=tls_context(known), headers=headers, timeout=60.0, trust_env=False
        )

    def kubeconfig(self, namespace: str, token: str) -> dict[str, object]:
        """Return the kubeconfig of a token."""
        authority = base64.b64encode(self.authority.certificate.encode()).decode()
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "local",
            "clusters": [{"name": "local", "cluster": {"server": self.url, "certificate-authority-data": authority}}],
            "users": [{"name": "local", "user": {"token": token}}],
            "contexts": [{"name": "local", "context": {"cluster": "local", "user": "local", "namespace": namespace}}],
        }

    def compact(self) -> None:
        """Let etcd forget all revisions but the last, as every five minutes: begun lists cannot be continued."""
        with httpx.Client(base_url=self.etcd_url, timeout=60.0, trust_env=False) as etcd:
            status = etcd.post("/v3/maintenance/status", json={}).raise_for_status().json()
            request = {"revision": status["header"]["revision"], "physical": True}
            etcd.post("/v3/kv/compaction", json=request).raise_for_status()


@contextmanager
def running_control_plane(
    programs: Path, *, audit_policy: Mapping[str, object] | None = None
) -> Iterator[ControlPlane]:
    """Run a control plane with ACK's rules and scheduler for shared GPUs.

    With an audit policy the API server writes `audit.log` into the folder, one JSON object per line.

    Raises:
        ControlPlaneError: a program did not start.
    """
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True, prefix="relaunch-")))
        programs_run = _Programs(programs, folder, stack)
        admission = JobAdmission()
        plane = programs_run.start_api_server(admission, audit_policy)
        http = stack.enter_context(plane.open_http())
        cards = LoopbackService(CardScheduler(http).answer)
        stack.callback(cards.close)
        webhook = LoopbackService(admission.answer, plane.authority)
        stack.callback(webhook.close)
        programs_run.start_controllers(plane, cards.url)
        configuration = webhook_configuration(webhook.url, plane.authority.certificate)
        path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
        http.post(path, json=configuration).raise_for_status()
        yield plane


class _Programs:
    """Starts the programs in a folder; the stack ends them."""

    def __init__(self, programs: Path, folder: Path, stack: ExitStack) -> None:
        self._programs = programs
        self._folder = folder
        self._stack = stack
        self._authority = CertificateAuthority()
        self._token = secrets.token_hex(16)

    def start_api_server(self, admission: JobAdmission, audit_policy: Mapping[str, object] | None) -> ControlPlane:
        self._write_credentials()
        etcd_url = self._start_on_free_port("etcd", self._etcd, lambda url: _answers(f"{url}/health"))
        audit = self._audit(audit_policy)

        def command(port: int) -> list[str]:
            return [*self._api_server(port, etcd_url), *audit]

        url = self._start_on_free_port("kube-apiserver", command, self._is_ready)
        plane = ControlPlane(
            url, etcd_url, self._authority, ServerVersion(0, 0, ""), self._token, admission, self._folder
        )
        with plane.open_http() as http:
            version = ServerVersion.parse(http.get("/version").raise_for_status().json())
        return ControlPlane(url, etcd_url, self._authority, version, self._token, admission, self._folder)

    def start_controllers(self, plane: ControlPlane, cards_url: str) -> None:
        minor = plane.version.minor
        kubeconfig = self._write("kubeconfig", json.dumps(plane.kubeconfig("default", plane.admin_token)))
        serving = [
            "--bind-address=127.0.0.1",
            *(
                f"--tls-cert-file={self._folder / 'server.pem'}",
                f"--tls-private-key-file={self._folder / 'server.key'}",
            ),
        ]
        controllers = [
            *(f"--kubeconfig={kubeconfig}", "--leader-elect=false", f"--controllers={','.join(_CONTROLLERS)}"),
            *(f"--service-account-private-key-file={self._folder / 'service-account.key'}", *serving),
            *(f"--root-ca-file={self._folder / 'ca.pem'}", "--node-monitor-period=1s"),
            *(f"--node-monitor-grace-period={LOST_AFTER_SECONDS}s", f"--kube-api-qps={_REQUESTS}"),
            f"--kube-api-burst={_REQUESTS}",
            # Before 1.24 it serves without TLS too, on a fixed port.
            *(["--port=0"] if minor < 24 else []),
        ]
        name = "kube-controller-manager"
        self._start_on_free_port(name, lambda port: [f"--secure-port={port}", *controllers], self._is_healthy)
        configuration = self._write(
            "scheduler.json", json.dumps(_scheduler_configuration(kubeconfig, minor, cards_url))
        )
        scheduler = [f"--config={configuration}", *serving]
        name = "kube-scheduler"
        self._start_on_free_port(name, lambda port: [f"--secure-port={port}", *scheduler], self._is_healthy)

    def _write_credentials(self) -> None:
        server = self._authority.issue_server()
        key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self._write("ca.pem", self._authority.certificate)
        self._write("server.pem", server.certificate)
        self._write("server.key", server.key)
        self._write("tokens.csv", f'{self._token},{ADMIN},{ADMIN},"system:masters"\n')
        pem = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
        )
        self._write("service-account.key", pem.decode("ascii"))

    def _etcd(self, port: int) -> list[str]:
        url = f"http://{LOOPBACK}:{port}"
        peer = f"http://{LOOPBACK}:{free_port()}"
        return [
            *("--data-dir", str(self._folder / "etcd"), "--unsafe-no-fsync", "--log-level", "error"),
            *("--listen-client-urls", url, "--advertise-client-urls", url),
            *(
                "--listen-peer-urls",
                peer,
                "--initial-advertise-peer-urls",
                peer,
                "--initial-cluster",
                f"default={peer}",
            ),
        ]

    def _api_server(self, port: int, etcd_url: str) -> list[str]:
        folder = self._folder
        key = self._folder / "service-account.key"
        return [
            *(f"--etcd-servers={etcd_url}", f"--secure-port={port}", "--bind-address=127.0.0.1"),
            *("--advertise-address=127.0.0.1", "--service-cluster-ip-range=10.96.0.0/24"),
            *(f"--tls-cert-file={folder / 'server.pem'}", f"--tls-private-key-file={folder / 'server.key'}"),
            *(f"--client-ca-file={folder / 'ca.pem'}", f"--token-auth-file={folder / 'tokens.csv'}"),
            *(f"--kubelet-certificate-authority={folder / 'ca.pem'}", "--authorization-mode=RBAC"),
            *("--service-account-issuer=https://kubernetes.default.svc", f"--service-account-key-file={key}"),
            f"--service-account-signing-key-file={key}",
            # New nodes would be tainted until a controller has seen them.
            "--disable-admission-plugins=TaintNodesByCondition",
            *("--default-not-ready-toleration-seconds=1", "--default-unreachable-toleration-seconds=1"),
        ]

    def _audit(self, policy: Mapping[str, object] | None) -> list[str]:
        if policy is None:
            return []
        path = self._write("audit-policy.json", json.dumps(policy))
        return [f"--audit-policy-file={path}", f"--audit-log-path={self._folder / 'audit.log'}"]

    def _start_on_free_port(
        self, name: str, command: Callable[[int], Sequence[str]], is_ready: Callable[[str], bool]
    ) -> str:
        """Start a program; once more on another port if it ends, since another process may have taken that one."""
        for _ in range(_ATTEMPTS):
            port = free_port()
            url = f"{'http' if name == 'etcd' else 'https'}://{LOOPBACK}:{port}"
            process = self._start(name, command(port))
            deadline = time.monotonic() + START_SECONDS
            while process.exit_code() is None and time.monotonic() < deadline:
                if is_ready(url):
                    return url
                time.sleep(_POLL_SECONDS)
        raise ControlPlaneError(f"{name} did not start:\n{self._log(name).read_text(errors='replace')[-4000:]}")

    def _start(self, name: str, arguments: Sequence[str]) -> GuardedProcess:
        # etcd ends last, and takes the folder along, also when this process is killed.
        own = self._folder if name == "etcd" else self._folder / f"{name}.run"
        own.mkdir(exist_ok=True)
        process = start_guarded(
            [self._programs / name, *arguments],
            environment={"PATH": "/usr/bin:/bin", "HOME": str(own), "TMPDIR": str(own)},
            folder=own,
            log=self._log(name),
        )
        self._stack.callback(process.stop)
        return process

    def _is_ready(self, url: str) -> bool:
        return self._answers_over_tls(f"{url}/readyz")

    def _is_healthy(self, url: str) -> bool:
        return self._answers_over_tls(f"{url}/healthz")

    def _answers_over_tls(self, url: str) -> bool:
        access = ClusterAccess(server=url, certificate_authority=self._authority.certificate, token=self._token)
        headers = {"Authorization": f"Bearer {self._token}"}
        return _answers(url, headers=headers, verify=tls_context(access))

    def _write(self, name: str, text: str) -> Path:
        path = self._folder / name
        path.write_text(text)
        path.chmod(0o600)
        return path

    def _log(self, name: str) -> Path:
        return self._folder / f"{name}.log"


def _answers(url: str, **options: object) -> bool:
    try:
        return httpx.get(url, timeout=5.0, trust_env=False, **options).is_success  # type: ignore[arg-type]  # as given
    except httpx.HTTPError:
        return False


def _scheduler_configuration(kubeconfig: Path, minor: int, cards_url: str) -> dict[str, object]:
    versions = {"v1beta1": minor < 22, "v1beta2": minor < 25, "v1": True}
    version = next(name for name, is_known in versions.items() if is_known)
    extender = {
        "urlPrefix": cards_url,
        "filterVerb": "filter",
        "bindVerb": "bind",
        "weight": 1,
        "enableHTTPS": False,
        "nodeCacheCapable": False,
        # Pods without it are not asked about.
        "managedResources": [{"name": MEMORY, "ignoredByScheduler": False}],
        "httpTimeout": "60s",
    }
    # It serves without TLS too, by default on a fixed port of all interfaces.
    address = f"{LOOPBACK}:{free_port()}"
    without_tls = {"healthzBindAddress": address, "metricsBindAddress": address}
    return {
        **(without_tls if version == "v1beta1" else {}),
        "apiVersion": f"kubescheduler.config.k8s.io/{version}",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": str(kubeconfig), "qps": _REQUESTS, "burst": _REQUESTS},
        "leaderElection": {"leaderElect": False},
        "extenders": [extender],
    }
