"""Why a benchmark gives no figures."""


class NotMeasurableError(Exception):
    """Something that is needed is not there, or did something else than what is measured; the message says what."""
