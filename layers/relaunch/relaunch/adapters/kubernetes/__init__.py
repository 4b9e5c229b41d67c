"""Kubernetes clusters: Alibaba Cloud ACK and ACS."""
