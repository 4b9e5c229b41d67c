"""Exit codes of the command, the same for every subcommand."""

OK = 0
JOB_FAILED = 1  # the job that was waited for FAILED or TIMED_OUT
USAGE = 2  # wrong arguments or a bad definition file
NOT_FOUND = 3  # no such job, definition, stack, or ACTIVE revision
UNAVAILABLE = 4  # nothing satisfies the definition, or AWS throttles: capacity or quota
REFUSED = 5  # AWS cannot be reached, or refuses: credentials, region, permissions
CANCELLED = 130  # Ctrl-C, or the job that was waited for was cancelled
