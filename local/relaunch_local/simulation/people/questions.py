"""All that people ask in a seed."""

from relaunch_local.simulation.account import SimulatedAccount
from relaunch_local.simulation.checks.dying_batches import let_functions_die
from relaunch_local.simulation.people.clusters import ask_for_clusters
from relaunch_local.simulation.people.dead_letters import ask_for_dead_letters
from relaunch_local.simulation.people.families import ask_for_families
from relaunch_local.simulation.people.files import ask_for_files
from relaunch_local.simulation.people.machines import ask_beside_machines
from relaunch_local.simulation.people.plans import ask_for_plans
from relaunch_local.simulation.people.pods import ask_for_shares
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
    ask_beside_machines(check, stream("people/machines"), now)
    ask_for_families(check, stream("people/families"), now)
    ask_for_shares(check, stream("people/pods"), now)
    ask_for_dead_letters(check, stream("people/dead-letters"), now)
    let_functions_die(check, stream("dying-batches"))
