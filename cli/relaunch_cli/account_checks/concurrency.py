"""The Lambda concurrency of the account, and what the stack has of it in reserve."""

from collections.abc import Collection, Mapping

from relaunch.core.checks import Check, is_ok, problem
from relaunch_cli.deployment.concurrency import LEAST_UNRESERVED, RESERVATIONS, Account, request_of

_NAME = "Lambda concurrency"


def check_concurrency(account: Account, reserved: Mapping[str, int], closed: Collection[str] = ()) -> Check:
    """Check that spot warnings and the webhook have what a flood must not take.

    `reserved` is by parameter, without that of a function that the stack has not. `closed` are functions that may
    not run.
    """
    if closed:
        text = (
            f"{' and '.join(closed)} may not run (a reserved concurrency of 0), as a removal leaves them that did not "
            "come to its end, or somebody who throttled them: they start no job, or stop none at a spot warning"
        )
        return problem(_NAME, text, "relaunch deploy, or relaunch uninstall to remove it all")
    lacking = [each for each in RESERVATIONS if reserved.get(each.parameter, each.least) < each.least]
    if not lacking:
        shown = ", ".join(f"{name}={amount}" for name, amount in sorted(reserved.items()))
        return is_ok(_NAME, f"{account.limit}, of which {account.unreserved} are unreserved; {shown}")
    names = " and ".join(each.function for each in lacking)
    missing = sum(each.most - reserved.get(each.parameter, 0) for each in lacking)
    text = (
        f"the account runs {account.limit} functions at once, {account.unreserved} of them unreserved, and nothing is "
        f"reserved for {names}: other functions can keep spot warnings and GitHub waiting"
    )
    if account.unreserved - missing >= LEAST_UNRESERVED:
        return problem(_NAME, text, "relaunch deploy")
    wanted = account.limit + missing + max(LEAST_UNRESERVED - account.unreserved, 0)
    return problem(_NAME, text, f"{request_of(wanted)}; once it is granted: relaunch deploy")
