"""Kubernetes clusters as targets: ACK and ACS of Alibaba Cloud. Imports ports and the core."""
