"""The page of a job, which the operator of a stack may have."""

import re

JOB_ID = "{job_id}"
"""What the address of a job's page has in the place of the job's ID."""
_UNSAFE = re.compile(r"[^A-Za-z0-9_.~-]")


def page_of(address: str, job_id: str) -> str:
    """Return where the page of a job is; characters that an address reserves are escaped (RFC 3986, 2.1)."""
    escaped = _UNSAFE.sub(lambda found: "".join(f"%{byte:02X}" for byte in found[0].encode()), job_id)
    return address.replace(JOB_ID, escaped)
