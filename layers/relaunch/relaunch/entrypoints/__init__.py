"""Entry points of the functions: one module per queue, schedule and interface.

functions/ and the simulation call them. Imports adapters, use cases, ports and the core; each module only what its
function needs, because every import delays a cold start. Those of queues raise PermanentError for an
invalid message, and TransientError for a temporary error.
"""
