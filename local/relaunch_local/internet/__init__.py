"""What is beyond AWS: GitHub's API and an endpoint of notices, over TLS on loopback, as functions reach the internet.

Functions resolve names to public addresses and connect to those, as they are deployed; `routes` leads these connections
to loopback. The certificate is of an authority of the local world's own, which its functions alone trust.
"""
