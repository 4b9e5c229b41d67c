"""Invokes the samples of events/ in containers with SAM CLI, against a local world: `make sam-local`.

Needs root and the packages docker.io and busybox-static, but no registry: the base image is made of this interpreter
(image.py), so glibc and CPython are this machine's, not Lambda's. Imports stack.
"""
