"""Checks of what checkpoints teach of speeds: it is how fast the trainings are that saved them."""

from collections.abc import Callable

from relaunch.core.definitions.accelerator import Accelerators, read_accelerators
from relaunch.ports import RateStore
from relaunch_local.simulation.scenario import Scenario

# Trainings save at times between, and a function may read a checkpoint seconds late.
SPEED_TOLERANCE = 0.15


# What speeds are learned on, as it is stored: one, several, and shares of one by NVIDIA MPS.
_MEASURED_ON = {
    "A10G": Accelerators("A10G"),
    "4x RTX PRO 4500": Accelerators("RTX PRO 4500", 4),
    "0.125x L4": Accelerators("L4", fraction=0.125),
}


def check_learned_speeds(check: Callable[[str, bool, str], None], scenario: Scenario, store: RateStore) -> None:
    """Check every observation that was kept, once nothing trains any more, and that what is stored of it is found."""
    for key, measured_on in _MEASURED_ON.items():
        found = read_accelerators(key)
        check("a speed is found again under what it was measured on", found == measured_on, f"{key}: {found}")
    for definition in scenario.definitions:
        recipe = scenario.recipes[definition.name]
        true = {each.accelerators: each.true for each in scenario.speeds.get(definition.name, {}).values()}
        for record in store.load_rates(definition.name):
            seconds = recipe.checkpoint_seconds
            if seconds is None or record.accelerators not in true:
                continue
            expected = seconds / (seconds / true[record.accelerators] + recipe.save_seconds)
            for each in record.observed:
                is_true = abs(each.steps_per_second / expected - 1) <= SPEED_TOLERANCE
                message = f"{each.job_id} on {record.accelerators}: {each.steps_per_second:.3f}, not {expected:.3f}"
                check("a speed that was learned is the true one", is_true, message)
