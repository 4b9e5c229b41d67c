"""Reads the kubeconfig of an ACK or ACS cluster, signed in as a RAM role.

Source: DescribeClusterUserKubeconfig (CS 2015-12-15).
"""

import re
import secrets
from collections.abc import Callable
from datetime import UTC, datetime

import httpx
from pydantic import Field

from relaunch.adapters.alibaba.answers import Answer, alibaba_errors, check
from relaunch.adapters.alibaba.ram_role import RamRole, RamSignIn, open_client
from relaunch.adapters.alibaba.signature import Credentials, Operation, canonical_query, sign
from relaunch.adapters.kubernetes.api.kubeconfig import ClusterAccess, read_kubeconfig
from relaunch.core.records import dataclass
from relaunch.ports import PermanentError

# The shortest that ACK issues; it is used until it expires.
KUBECONFIG_MINUTES = 15
_CLUSTER_HINT = "allow the RAM role cs:DescribeClusterUserKubeconfig on this cluster, and check its ID and region"


class _UserKubeconfig(Answer):
    config: str = Field(min_length=1, repr=False)
    expiration: datetime | None = None


@dataclass(frozen=True)
class ClusterReference:
    """A cluster of Alibaba Cloud, in the region of the role that may read its kubeconfig."""

    role: RamRole
    cluster_id: str

    def __post_init__(self) -> None:
        """Check what becomes part of an address.

        Raises:
            PermanentError: the ID has characters that none has.
        """
        if not re.fullmatch(r"[a-z0-9]{8,64}", self.cluster_id):
            raise PermanentError(f"{self.cluster_id!r} is no cluster ID: the console shows it, 33 letters and digits")


class KeylessAccess:
    """Fetches access to a cluster; `web_identity_token` returns a token of an issuer that RAM trusts.

    The user of the kubeconfig is the RAM role, and needs a RoleBinding in the cluster.
    """

    def __init__(
        self,
        cluster: ClusterReference,
        web_identity_token: Callable[[], str],
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self._cluster = cluster
        self._sign_in = RamSignIn(cluster.role, web_identity_token, now=now, transport=transport)
        self._now = now
        self._http = open_client(transport)

    def fetch(self) -> ClusterAccess:
        """Return new access with the time when it expires; every call makes three requests.

        Raises:
            TransientError: a service is throttling or not reachable.
            PermanentError: a service refused; the message says what to check.
        """
        issued = self._read_kubeconfig(self._sign_in.assume().credentials)
        return read_kubeconfig(issued.config, expires_at=issued.expiration)

    def _read_kubeconfig(self, credentials: Credentials) -> _UserKubeconfig:
        doing = f"reading the kubeconfig of cluster {self._cluster.cluster_id}"
        operation = Operation(
            "DescribeClusterUserKubeconfig",
            "2015-12-15",
            "GET",
            f"cs.{self._cluster.role.region}.aliyuncs.com",
            f"/k8s/{self._cluster.cluster_id}/user_config",
            {"TemporaryDurationMinutes": str(KUBECONFIG_MINUTES)},
        )
        headers = sign(operation, credentials, self._now(), secrets.token_hex(16))
        with alibaba_errors(doing):
            url = f"https://{operation.host}{operation.path}?{canonical_query(operation.query)}"
            answer = self._http.get(url, headers=headers)
            check(answer, doing, _CLUSTER_HINT)
            return _UserKubeconfig.model_validate_json(answer.content)
