"""Private IPv4 addresses of instances, and their private DNS names.

Sources: "Subnet CIDR blocks" (Amazon VPC User Guide): the first four addresses and the last one of a subnet are AWS's;
"Amazon EC2 instance hostname types" (EC2 User Guide): the IP name is `ip-10-0-1-2.ec2.internal` in us-east-1, and has
the Region elsewhere. Which free address EC2 chooses is not documented: here it is the lowest, so that an instance soon
has the address of another one that has ended.
"""

import heapq
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv4Network

NETWORK = IPv4Network("10.0.0.0/8")
_SUBNET_BITS = 16
_FIRST = 4


@dataclass(slots=True)
class _Subnet:
    network: IPv4Network
    next_number: int = _FIRST
    freed: list[int] = field(default_factory=list)

    def take(self) -> str:
        if self.freed:
            return str(self.network[heapq.heappop(self.freed)])
        number = self.next_number
        self.next_number += 1
        return str(self.network[number])

    def release(self, address: str) -> None:
        heapq.heappush(self.freed, int(IPv4Address(address)) - int(self.network.network_address))


@dataclass(slots=True)
class PrivateAddresses:
    """The private addresses of a region: each subnet is a network of its own, in the order in which they are used."""

    network: IPv4Network = NETWORK
    _subnets: dict[str, _Subnet] = field(default_factory=dict)

    def take(self, subnet_id: str) -> str:
        """Return an address that nobody has in the subnet; nobody else gets it until it is released."""
        if subnet_id not in self._subnets:
            base = int(self.network.network_address) + (len(self._subnets) << (32 - _SUBNET_BITS))
            self._subnets[subnet_id] = _Subnet(IPv4Network((base, _SUBNET_BITS)))
        return self._subnets[subnet_id].take()

    def release(self, subnet_id: str, address: str) -> None:
        """Let another instance of the subnet have the address."""
        self._subnets[subnet_id].release(address)


def private_dns_name(address: str, region: str) -> str:
    """Return the private DNS name of an instance with this address."""
    domain = "ec2.internal" if region == "us-east-1" else f"{region}.compute.internal"
    return f"ip-{address.replace('.', '-')}.{domain}"
