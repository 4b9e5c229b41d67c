"""Asks the RAM role of Alibaba Cloud whether it lets the caller in, as whom it must not.

What it would give is thrown away, and nothing is changed.
"""

from collections.abc import Iterator, Mapping

from relaunch.adapters.alibaba.answers import RefusedError
from relaunch.adapters.alibaba.ram_role import AUDIENCE, RamRole, RamSignIn
from relaunch.adapters.aws.web_identity import WebIdentity
from relaunch.core.checks import Check
from relaunch.ports import PermanentError
from relaunch_cli.account_checks.ram_trust import check_assumed, check_refused, not_asked
from relaunch_cli.account_readers.calls import AccountCalls

_REGIONS = ("AckRegion", "AcsRegion", "OssRegion")


def check_ram_trust(outputs: Mapping[str, str], calls: AccountCalls) -> Iterator[Check]:
    """Check the trust policy of the RAM role of a stack that signs in by one.

    Raises:
        TransientError: AWS or Alibaba Cloud does not answer.
    """
    role_arn = outputs.get("AlibabaRoleArn", "")
    provider_arn = outputs.get("AlibabaOidcProviderArn", "")
    region = next((outputs[name] for name in _REGIONS if outputs.get(name)), "")
    if not (role_arn and provider_arn and region):
        return
    # Imported here: httpx is only needed with a cluster of Alibaba Cloud, and takes a moment.

    try:
        token = WebIdentity(calls.client("sts"), AUDIENCE).issue_token()
    except PermanentError as error:
        yield not_asked(str(error).splitlines()[0])
        return
    try:
        RamSignIn(RamRole(region, role_arn, provider_arn), lambda: token).assume()
    except RefusedError as error:
        yield check_refused(role_arn, error.code, str(error))
        return
    yield check_assumed(role_arn, outputs.get("AlibabaSubjects", ""))
