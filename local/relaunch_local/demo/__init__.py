"""The demo: a push and an upload on one machine, `python -m relaunch_local.demo`. Imports stack and ecs.

The template is deployed into a local world. A signed push starts a training; after a spot warning it resumes on another
machine. Then an upload starts a training whose machine is terminated without a warning. What happened is in demo.json;
tests/real/test_demo.py checks it independently.
"""
