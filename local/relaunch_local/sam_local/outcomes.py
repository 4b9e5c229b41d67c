"""The table of the samples of events/, with all that must come of each."""

from collections.abc import Mapping

from relaunch_local.sam_local.change_outcomes import CHANGES
from relaunch_local.sam_local.request_outcomes import REQUESTS
from relaunch_local.sam_local.scene import Outcome

OUTCOMES: Mapping[str, tuple[Outcome, ...]] = {**REQUESTS, **CHANGES}
"""In this order: the later ones of a sample, and of an upload, are about what the earlier ones left."""
