"""Expected interruption rates of spot instances, by instance type.

The EC2 Spot Instance Advisor publishes the share of spot instances that were interrupted in the last month, in bands,
by type and region. This module estimates a rate per hour of running from it: the highest band, in which nearly every
accelerated type is in some region, is taken as the rate measured in market traces; other bands are scaled down in
proportion.
"""

from types import MappingProxyType

# In the traces of "Can't Be Late" (NSDI 2024), 6 to 18 % of the instances ran for another 24 hours, and 12 hours of
# work without a checkpoint took 27; both correspond to 0.1. The traces are of one old, scarce type in 2023.
SCARCE_PER_HOUR = 0.1

# Midpoints of the advisor's bands in percent; the last band is "more than 20".
_BAND_MIDPOINTS = (2.5, 7.5, 12.5, 17.5, 30.0)
_RATES = tuple(SCARCE_PER_HOUR * midpoint / _BAND_MIDPOINTS[-1] for midpoint in _BAND_MIDPOINTS)

# The highest band of each type in any region (EC2 Spot Instance Advisor, 2025-06-28); others are in the last band.
_BAND_OF_TYPE = MappingProxyType(
    {
        "g5g.16xlarge": 1,
        "g5g.metal": 1,
        "trn1.2xlarge": 1,
        "g5g.8xlarge": 2,
        "trn1.32xlarge": 2,
        "g5g.xlarge": 3,
        "g6.16xlarge": 3,
        "gr6.8xlarge": 3,
        "inf2.24xlarge": 3,
        "p4de.24xlarge": 3,
        "trn1n.32xlarge": 3,
    }
)


def estimated_interruptions_per_hour(instance_type: str) -> float:
    """Return the expected interruptions per hour of a spot instance; an unknown type has the highest rate."""
    band = _BAND_OF_TYPE.get(instance_type)
    return SCARCE_PER_HOUR if band is None else _RATES[band]
