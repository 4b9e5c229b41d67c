"""Exit codes, the same for every subcommand."""

OK = 0
JOB_FAILED = 1  # the job that was waited for ended FAILED or TIMED_OUT
USAGE = 2  # invalid arguments or an invalid definition file
NOT_FOUND = 3  # no such job, definition, stack, or ACTIVE revision
UNAVAILABLE = 4  # no offering satisfies the definition (capacity or quota), or AWS throttles
REFUSED = 5  # AWS denied the request or is unreachable: credentials, region, permissions, network
BUG = 70  # an error that Relaunch did not foresee; EX_SOFTWARE of sysexits.h
CANCELLED = 130  # Ctrl-C, or the job that was waited for was cancelled
