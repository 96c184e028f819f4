"""Network addresses that an untrusted document may not name."""
from __future__ import annotations

from ipaddress import ip_address, ip_network

_TRANSLATED = ip_network("64:ff9b::/96"), ip_network("64:ff9b:1::/48")  # RFC 6052, RFC 8215
# Metadata services of clouds with addresses that are not link-local: Alibaba, Azure, Oracle; in IPv6 AWS and Google.
_METADATA = frozenset(map(ip_address, ("100.100.100.200", "168.63.129.16", "192.0.0.192", "fd00:ec2::254",
                                       "fd20:ce::254")))


def is_near(address: str) -> bool:
    """Return whether an address is one of this machine, of its link, or of the cloud that this machine runs in.

    These are loopback, link-local, unspecified and multicast addresses, and those at which clouds give credentials to
    their machines; also in the form of IPv6 addresses. Private networks are not near, because archives lie there.

    >>> is_near("127.0.0.1"), is_near("::ffff:169.254.1.1"), is_near("10.0.0.1"), is_near("fe80::1%eth0")
    (True, True, False, True)
    """
    address = ip_address(address.partition("%")[0])
    if address.version == 6:
        inner = address.ipv4_mapped or address.sixtofour
        if inner is None and any([address in network for network in _TRANSLATED]):
            inner = ip_address(int(address) & 0xFFFFFFFF)
        if inner is None and int(address) >> 32 == 0 and int(address) > 1:
            inner = ip_address(int(address))
        if inner is not None:
            return is_near(str(inner))
    elif int(address) >> 24 == 0:
        return True
    return (address.is_loopback or address.is_link_local or address.is_unspecified or address.is_multicast
            or address in _METADATA)
