"""The GitHub Action: submits a job to `job_api`, waits for it, plans it or cancels it (docs/github-action.md).

Only the standard library is imported, and Python 3.9 suffices, which is the oldest `python3` of runners: nothing is
installed on them.
"""
