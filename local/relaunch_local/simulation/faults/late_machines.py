"""Machines that arrive after the launches that they were launched for were withdrawn."""

from collections.abc import Callable, Mapping

from relaunch_local.simulation.faults.injector import FaultInjector


class LateMachines(FaultInjector):
    """Delays machines now and then until the faults stop."""

    stream = "late-machines"
    pause_seconds = (600.0, 3_600.0)

    def _weighted_faults(self) -> Mapping[str, tuple[int, Callable[[], str]]]:
        return {"scale-out-late": (1, self._delay)}

    def _delay(self) -> str:
        """Let the machines that boot in the next minutes register around the deadline of their launches or later."""
        deadline = self._account.scenario.limits.provisioning_deadline(is_managed=False).total_seconds()
        seconds = self._random.uniform(300.0, 1_500.0)
        registration = deadline + self._random.uniform(-120.0, 600.0)
        self._change_timing(registration=registration)
        self._account.clock.call_later(seconds, self.end)
        return f"{registration:.0f} s for {seconds:.0f} s"

    def end(self) -> None:
        """Let machines arrive in time."""
        self._change_timing(registration=self._account.scenario.timing.registration)
