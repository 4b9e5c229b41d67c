"""The tags of a machine of our own: how it is found again, and what its user data reads from instance metadata.

Keys that instance metadata offers have letters, digits and `+ - = . , _ : @` only ("View tags for your EC2 instances
using instance metadata", Amazon EC2 User Guide).
"""

STACK_TAG = "relaunch:stack"
"""The name of the stack that requested the machine, and that alone ends it."""

MACHINE_TAG = "relaunch:machine"
"""The ID of the machine, by which its instance is found after an unknown outcome."""

JOB_TAG = "relaunch:job"
"""The ID of the job that requested the machine; other jobs may use it later."""

IMAGE_TAG = "relaunch:image"
"""The image, by digest, that the machine pulls while it registers."""
