"""The collector of cycles rests until a function has handled its first event.

A start makes a hundred thousand objects and two thousand of cycles. With Python's threshold of 700 the collector looks
at them again and again: a tenth of the processor time to the first event of observe_task, a sixth of launch_attempt's.
"""

import gc

RESTING = 300_000
"""So many more objects made than deleted make it look."""
_USUAL = gc.get_threshold()

gc.set_threshold(RESTING)


def wake() -> None:
    """Let the collector look as often as Python has it, but no more at what there is: that stays."""
    if gc.get_threshold()[0] == RESTING:
        gc.freeze()
        gc.set_threshold(*_USUAL)
