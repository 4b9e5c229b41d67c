"""How often a process of the simulation looks for garbage."""

import gc


def collect_rarely() -> None:
    """Look for garbage among what the runs make alone, and less often: a run keeps most of what it has made.

    For processes that do nothing else, once their modules are imported.
    """
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
