"""The demo of a training over several machines: real torchrun, gloo and PyTorch, each machine an address of loopback.

A push starts examples/ddp on machines that EC2 Fleet launches all or none. After a spot warning of one of them all
ranks save, and the next generation resumes on those that are left and another one. In the end its loss and weights are
compared with those of a training that nobody interrupted. tests/real/test_demo_of_a_gang.py checks it independently.
"""
