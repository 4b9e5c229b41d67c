"""How often spot machines are taken away, as far as it is known before a job has run anywhere.

The EC2 Spot Instance Advisor says of each type and region which share of spot machines was interrupted in the last
month, in bands. What is needed here is a rate per hour of running, which that is not: the highest band, where nearly
every type for training is in some region, is therefore taken for the rate that market traces show, and the others for
as much less as their band is lower.
"""

from types import MappingProxyType

# In the traces of "Can't Be Late" (NSDI 2024) 6 to 18 % of the machines lived for another 24 hours, and 12 hours of
# work without a checkpoint took 27: both fit 0.1. Their market, one old type in 2023, was a scarce one.
SCARCE_PER_HOUR = 0.1

# Middles of the advisor's bands in percent; the last one is "more than 20".
_MIDDLES = (2.5, 7.5, 12.5, 17.5, 30.0)
_RATES = tuple(SCARCE_PER_HOUR * middle / _MIDDLES[-1] for middle in _MIDDLES)

# The worst band of a type in any region (EC2 Spot Instance Advisor, 2025-06-28), where it is not the highest one.
_CALMER = MappingProxyType(
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


def usual_interruptions_per_hour(instance_type: str) -> float:
    """Return the interruptions per hour to reckon with for spot machines of a type; unknown types count as scarce."""
    band = _CALMER.get(instance_type)
    return SCARCE_PER_HOUR if band is None else _RATES[band]
