"""What fits a job, in which order: requirements, filters, shares of GPUs, Neuron devices, cost, notices.

Imports definitions, offerings and revisions only.
"""
