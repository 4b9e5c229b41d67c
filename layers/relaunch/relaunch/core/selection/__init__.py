"""Selection of an offering: requirements, filters, shares of GPUs, Neuron devices, expected cost, notices.

Imports definitions, offerings, revisions and task_definitions only.
"""
