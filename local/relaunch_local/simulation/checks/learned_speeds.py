"""Checks of what checkpoints teach of speeds: it is how fast the trainings are that saved them."""

from collections.abc import Callable

from relaunch.ports import RateStore
from relaunch_local.simulation.scenario import Scenario

# Trainings save at times between, and a function may read a checkpoint seconds late.
_TOLERANCE = 0.15


def check_learned_speeds(check: Callable[[str, bool, str], None], scenario: Scenario, store: RateStore) -> None:
    """Check every observation that was kept, once nothing trains any more."""
    for definition in scenario.definitions:
        recipe = scenario.recipes[definition.name]
        true = {each.accelerators: each.true for each in scenario.speeds.get(definition.name, {}).values()}
        for record in store.load_rates(definition.name):
            seconds = recipe.checkpoint_seconds
            if seconds is None or record.accelerators not in true:
                continue
            expected = seconds / (seconds / true[record.accelerators] + recipe.save_seconds)
            for each in record.observed:
                is_true = abs(each.steps_per_second / expected - 1) <= _TOLERANCE
                message = f"{each.job_id} on {record.accelerators}: {each.steps_per_second:.3f}, not {expected:.3f}"
                check("a speed that was learned is the true one", is_true, message)
