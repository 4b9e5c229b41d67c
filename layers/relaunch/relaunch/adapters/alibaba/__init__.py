"""Alibaba Cloud: how a function with an AWS role signs in without a stored key, and reads a cluster's kubeconfig.

AWS signs a token for the function's role; RAM trades it for credentials of 15 minutes; with them ACK and ACS issue a
kubeconfig of 15 minutes.
"""
