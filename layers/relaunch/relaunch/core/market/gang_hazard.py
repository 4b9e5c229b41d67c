"""How often a gang, several machines of one pool at once, is lost, compared with one machine."""

_EXPONENT = 0.3
"""How the interruptions of several machines of a pool grow with their number: less than in proportion, as EC2 takes
many at once. The full gangs of the traces of "Can't Be Late" (NSDI 2024; V100, 2023) ended 1.0 to 2.0 times as often as
one machine was taken, at 4 and at 16 machines: exponents from 0 to 0.5."""


def hazard_of(nodes: int) -> float:
    """Return how many times as often one of several spot machines in a zone is interrupted as a single one is."""
    return float(nodes**_EXPONENT)
