"""The vCPUs that jobs of several nodes need at once, which `relaunch deploy` says: N times those of one machine."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

from relaunch.core.checks import Verdict
from relaunch.ports import PortError
from relaunch.usecases.plan_jobs import plan_jobs
from relaunch_cli.account_checks.quotas import GrantedQuotas, check_quotas
from relaunch_cli.account_readers.diagnosis import needs_of
from relaunch_cli.deployment.findings import QuotaState
from relaunch_cli.errors import CommandError

if TYPE_CHECKING:
    from relaunch.ports import Dependencies


def missing_for_nodes(load: "Callable[[], Dependencies]", quotas: QuotaState) -> Sequence[str]:
    """Return what the registered definitions with `nodes` lack, with the command that requests it.

    What cannot be read is left out: it ends no deployment, and `relaunch doctor` says why.
    """
    if not quotas.vcpus:
        return ()
    try:
        deps = load()
        named = [each for each in deps.definitions.list_definitions() if each.nodes > 1]
        needs = needs_of(plan_jobs(named, deps)) if named else ()
    except (PortError, CommandError, ClientError, BotoCoreError):
        return ()
    checks = check_quotas(needs, GrantedQuotas(quotas.vcpus, quotas.requested))
    return [f"{each.name}: {each.text}: {each.to_do}" for each in checks if each.verdict is Verdict.PROBLEM]
