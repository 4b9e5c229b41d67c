"""When a job is on spot, when on on-demand instances, and when it waits.

Times are hours, prices USD per hour. A policy is a pure function from a `Situation` to a `Choice`.
"""
