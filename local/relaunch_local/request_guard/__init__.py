"""Refuses requests to the servers of the local world that a web page, or anybody without its credentials, can send.

Any page in the developer's browser can reach loopback ports, and these servers run what they are told to. The emulator
and the ECS simulator use the same rules. Imports the standard library and botocore, which both environments have.
"""
