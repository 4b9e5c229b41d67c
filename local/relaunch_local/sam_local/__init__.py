"""Every sample of events/ invoked in a real container, by SAM CLI, against a local world: `make sam-local`.

Needs root and the packages docker.io and busybox-static; no registry: the base image is made of the interpreter at hand
(image.py), so that glibc and CPython are this machine's, not Lambda's.
"""
