"""What each function does with what it is called with: one module per queue, schedule and interface.

functions/ and the simulation call the same. Imports adapters, use cases, ports and the core; each module only what its
function needs, for a cold start pays for every import.
"""
