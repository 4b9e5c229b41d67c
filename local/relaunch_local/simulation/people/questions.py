"""All that people ask in a seed."""

from relaunch_local.simulation.account import SimulatedAccount
from relaunch_local.simulation.people.clusters import ask_for_clusters
from relaunch_local.simulation.people.files import ask_for_files
from relaunch_local.simulation.people.plans import ask_for_plans
from relaunch_local.simulation.people.receivers import ask_for_test
from relaunch_local.simulation.people.schedules import ask_for_schedules


def ask_everything(account: SimulatedAccount) -> None:
    """Ask everything once, before anything happens."""
    check = account.invariants.check
    now = account.clock.now()
    stream = account.chance.stream
    ask_for_schedules(check, stream("people/schedules"), now)
    ask_for_clusters(check, stream("people/clusters"))
    ask_for_files(check, stream("people/files"), account.scenario.every_definition, now)
    ask_for_plans(check, stream("people/plans"), now)
    ask_for_test(check, stream("people/receivers"), now)
