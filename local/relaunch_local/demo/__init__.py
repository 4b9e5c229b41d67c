"""The demo: a push and an upload on one machine, `python -m relaunch_local.demo`. Imports stack and ecs.

The template is deployed into a local world. A signed push starts a training on a machine that EC2 Fleet launches;
after a spot warning it resumes on another one, which was requested while it saved. Then an upload starts a training
whose machine is terminated without a warning. In the end no machine is left. Meanwhile GitHub's API, which is served
here, gets the statuses of the commit, and an endpoint the notices of both jobs. What happened is in demo.json;
tests/real/test_demo.py checks it independently.
"""
