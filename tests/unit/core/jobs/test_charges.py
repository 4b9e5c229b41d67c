"""What a job remembers of the machines that it pays."""

from fakes.builders import NOW
from relaunch.core.jobs.charges import Charges
from relaunch.core.jobs.state import OpenCharge
from relaunch.core.machines.charges import Charge


def test_a_machine_that_is_there_and_one_that_is_gone() -> None:
    opened = OpenCharge("m-1", NOW, 0.1, 0.2, 1.0, 2.0, 0.9)
    charges = Charges(latest=(Charge("m-2", 0.5),), open=(opened,))

    assert (charges.open_of("m-1"), charges.open_of("m-2")) == (opened, None)
    assert (charges.has_charged("m-1"), charges.has_charged("m-2")) == (False, True)
