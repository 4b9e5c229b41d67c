"""The whole story on one machine: `python -m relaunch_local.demo`.

The template is deployed into the local world. A signed push starts a training, a spot warning takes its machine, it
goes on elsewhere. Then an upload starts another one, whose machine goes without any warning. What happened is left in
demo.json, from which tests/real/test_demo.py finds out by itself whether the story is true.
"""
