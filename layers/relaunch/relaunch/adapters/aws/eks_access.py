"""Access to a cluster of Amazon EKS as the role of the caller, without a stored key.

Sources: DescribeCluster (Amazon EKS API Reference); for the token "API Authorization from Outside a Cluster" of
aws-iam-authenticator, and `aws eks get-token` of the AWS CLI: it is a GetCallerIdentity of STS that is signed and not
sent, with the name of the cluster in a header that is signed too. The cluster sends it, and takes it for 15 minutes.
"""

import base64
import binascii
from collections.abc import Callable
from dataclasses import field
from datetime import UTC, datetime, timedelta
from typing import Any

from botocore.exceptions import ClientError

from relaunch.adapters.aws.errors import aws_errors, error_code
from relaunch.core.records import dataclass
from relaunch.ports import NotGrantedError, TransientError

TOKEN_MINUTES = 15
_CLUSTER_HEADER = "x-k8s-aws-id"
_PREFIX = "k8s-aws-v1."
# Of the signature, which clients set to this; the cluster goes by the time when it was made.
_SIGNED_SECONDS = 60
# A cluster has its endpoint and its CA in these states ("status" of Cluster, Amazon EKS API Reference).
_USABLE = frozenset({"ACTIVE", "UPDATING"})


@dataclass(frozen=True)
class EksSignIn:
    """Where the API of a cluster is, the CA that its certificate is of (PEM), and a token until `expires_at`."""

    server: str
    certificate_authority: str = field(repr=False)
    token: str = field(repr=False)
    expires_at: datetime


class EksAccess:
    """Fetches access to a cluster of the account and region; `eks` and `sts` are clients of these services.

    Who calls needs an access entry in the cluster, whose groups or user a RoleBinding names.
    """

    def __init__(
        self, eks: Any, sts: Any, cluster_name: str, *, now: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self._eks = eks
        self._sts = sts
        self._cluster_name = cluster_name
        self._now = now

    def fetch(self) -> EksSignIn:
        """Return new access with the time when it expires; every call makes one request.

        Raises:
            NotGrantedError: the role may not read the cluster, there is none of this name, or it cannot be reached.
            TransientError: EKS is throttling or not reachable, or the cluster is being created.
        """
        doing = f"reading the EKS cluster {self._cluster_name}"
        with aws_errors(doing):
            try:
                cluster = self._eks.describe_cluster(name=self._cluster_name)["cluster"]
            except ClientError as error:
                if error_code(error) == "ResourceNotFoundException":
                    hint = "correct the parameter EksClusterName: it is in the account and region of the stack"
                    raise NotGrantedError(f"{doing}: there is none: {hint}") from error
                raise
        server, authority = self._read(cluster, doing)
        signed_at = self._now()
        with aws_errors("signing in to the EKS cluster"):
            token = self._sign()
        return EksSignIn(server, authority, token, signed_at + timedelta(minutes=TOKEN_MINUTES))

    def _read(self, cluster: Any, doing: str) -> tuple[str, str]:
        status = str(cluster.get("status", ""))
        if status not in _USABLE:
            raise TransientError(f"{doing}: it is {status}")
        if not cluster.get("resourcesVpcConfig", {}).get("endpointPublicAccess", True):
            hint = "functions are in no VPC: let it have a public endpoint (`aws eks update-cluster-config`)"
            raise NotGrantedError(f"{doing}: its endpoint is private alone, and {hint}")
        server = str(cluster.get("endpoint", ""))
        try:
            authority = base64.b64decode(cluster["certificateAuthority"]["data"], validate=True).decode()
        except (KeyError, binascii.Error, UnicodeDecodeError) as error:
            raise TransientError(f"{doing}: it has no certificate authority: {error}") from error
        if not server.startswith("https://"):
            raise TransientError(f"{doing}: it has no endpoint")
        return server, authority

    def _sign(self) -> str:
        def name_cluster(request: Any, **_given: Any) -> None:
            request.headers[_CLUSTER_HEADER] = self._cluster_name

        events = self._sts.meta.events
        events.register("before-sign.sts.GetCallerIdentity", name_cluster, unique_id=_CLUSTER_HEADER)
        try:
            url = self._sts.generate_presigned_url("get_caller_identity", ExpiresIn=_SIGNED_SECONDS, HttpMethod="GET")
        finally:
            events.unregister("before-sign.sts.GetCallerIdentity", unique_id=_CLUSTER_HEADER)
        return _PREFIX + base64.urlsafe_b64encode(str(url).encode()).decode().rstrip("=")
