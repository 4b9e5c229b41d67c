"""Parsers of queue messages and of requests to `job_api`.

Imports ports, the core, and the parsers of aws/ and github/.
"""
