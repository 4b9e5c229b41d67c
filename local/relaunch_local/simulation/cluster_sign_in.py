"""How functions sign in to the cluster of a run: by their role, with STS, or with EKS."""

import base64
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from relaunch.adapters.alibaba.ram_role import AUDIENCE
from relaunch.adapters.aws.eks_access import EksAccess
from relaunch.adapters.aws.web_identity import WebIdentity
from relaunch.core.definitions.targets import Target
from relaunch_local.simulation.aws.calls import Calls
from relaunch_local.simulation.aws.clients import CallingClient
from relaunch_local.simulation.scenario import EKS_CLUSTER

ADDRESS = "https://cluster.invalid"


class ModelSts:
    """Implements what is asked of the client of STS."""

    def get_web_identity_token(self, **_parameters: Any) -> dict[str, str]:
        """GetWebIdentityToken."""
        return {"WebIdentityToken": "a.b.c"}


class ModelEks:
    """Implements what is asked of the client of EKS."""

    def describe_cluster(self, **_parameters: Any) -> dict[str, Any]:
        """DescribeCluster."""
        authority = {"data": base64.b64encode(b"-----BEGIN CERTIFICATE-----").decode()}
        return {"cluster": {"status": "ACTIVE", "endpoint": ADDRESS, "certificateAuthority": authority}}


_MODELS = {"sts": ModelSts(), "eks": ModelEks()}


class _Signer:
    """Signs a request to STS, which is no call."""

    def __init__(self) -> None:
        ignore: Callable[..., None] = lambda *_given, **_named: None  # noqa: E731 - twice the same
        self.meta = SimpleNamespace(events=SimpleNamespace(register=ignore, unregister=ignore))

    def generate_presigned_url(self, *_given: Any, **_named: Any) -> str:
        """Return an address."""
        return "https://sts.invalid/"


@dataclass(frozen=True)
class SignIn:
    """The clients of functions that sign in to the cluster with them."""

    sts: Any
    eks: Any

    def sign_in(self, target: Target) -> None:
        """Make the calls that signing in takes."""
        if target.capabilities.is_on_alibaba_cloud:
            WebIdentity(self.sts, AUDIENCE).issue_token()
        else:
            EksAccess(self.eks, _Signer(), EKS_CLUSTER).fetch()


def make_sign_in(authorized: Callable[[str, Any], Any], calls: Calls) -> SignIn:
    """Return the clients of functions, whose calls are `authorized` by their roles."""
    made = (CallingClient(name, authorized(name, each), calls) for name, each in _MODELS.items())
    return SignIn(*made)
