"""Who may call what: IAM policies are evaluated, and the permissions of calls are looked up.

`policies` evaluates policies. `calls` knows which permissions a call of an SDK requires, and `reference` what the
Service Authorization Reference says of actions, resources and condition keys.
"""
