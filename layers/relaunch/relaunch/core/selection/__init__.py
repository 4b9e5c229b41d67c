"""Selection of an offering: requirements, filters, shares of GPUs, Neuron devices, expected cost, notices.

Imports definitions, offerings and revisions only.
"""
