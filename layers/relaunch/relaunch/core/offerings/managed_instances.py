"""What ECS Managed Instances cost beside EC2's price: a fee of AWS for each instance.

Sources: "Amazon ECS pricing": the fee is billed beside the instance, whatever its purchase option is;
aws-samples' calculator of ECS Managed Instances (May 2026): 12 % of the on-demand price; "Amazon ECS Managed Instances
GPU price" (What's New, 2026-07-07): 35 % less on G, 60 % less on P and Trainium from 2026-07-01 on. A published bill of
September 2026 has 7.8 % for g6.xlarge and g6e.xlarge.
"""

import re
from types import MappingProxyType

_USUAL = 0.12
_BY_LETTERS = MappingProxyType({"g": 0.078, "gr": 0.078, "p": 0.048, "trn": 0.048})
_LETTERS = r"[a-z]+"


def managed_fee_share(instance_type: str) -> float:
    """Return the fee for an instance of a type, as a fraction of its on-demand price."""
    letters = re.match(_LETTERS, instance_type)
    return _BY_LETTERS.get(letters[0], _USUAL) if letters else _USUAL


def managed_rejection(instance_type: str) -> str:
    """Return why ECS Managed Instances do not run a type; empty if nothing is known against it.

    Source: "Amazon ECS task definitions for AWS Neuron machine learning workloads" (ECS Developer Guide).
    """
    if not instance_type.startswith("inf1."):
        return ""
    return f"ECS runs {instance_type} on EC2 alone, not on Managed Instances: take a group of it, inf2 or trn1"
