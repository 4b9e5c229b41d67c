"""The errors of benchmarks."""


class NotMeasurableError(Exception):
    """Something required is missing, or did not do what is to be measured."""
