"""Whether a text tells of a fault of a GPU: of an Xid, the number by which the NVIDIA driver reports an error.

"Xid Errors" (NVIDIA GPU Deployment and Management). Those of programs are the ones after which the device plugin of
NVIDIA for Kubernetes takes a GPU for healthy (internal/rm/health.go, xidsToSkip).
"""

import re

_XIDS_OF_PROGRAMS = frozenset({13, 31, 43, 45, 68, 109})
# "NVRM: Xid (PCI:0000:00:1e): 79, pid=…", "Xid 48", "Xid: 94".
_XID = re.compile(r"(?i)\bXid\b ?(?:\([^)]{0,40}\))?[: ]{0,3}(?P<number>[0-9]{1,4})\b")


def tells_gpu_fault(text: str) -> bool:
    """Return whether the text has an Xid that is not one of programs."""
    return any(int(each["number"]) not in _XIDS_OF_PROGRAMS for each in _XID.finditer(text))
