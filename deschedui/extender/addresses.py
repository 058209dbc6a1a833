"""Which addresses an extender must not have: link-local ones, where clouds keep their credentials service.

Loopback and 0.0.0.0 (this machine, too) may be called: an extender beside us is the proposal's own example.
"""

import ipaddress
from typing import Final

IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address

# Prefixes whose last 32 bits are an IPv4 address: NAT64 (RFC 6052), compatible, translated (RFC 2765).
_IN_THE_END: Final = tuple(map(ipaddress.IPv6Network, ("64:ff9b::/96", "::/96", "::ffff:0:0:0/96")))
_LOCAL_NAT64: Final = ipaddress.IPv6Network(
    "64:ff9b:1::/48"
)  # RFC 8215: the IPv4 address may stand in five places
_ISATAP: Final = frozenset({b"\x00\x00\x5e\xfe", b"\x02\x00\x5e\xfe"})  # RFC 5214: then the IPv4 address
# Credentials services of clouds that are not link-local: AWS and Google by IPv6, Alibaba, Azure, Oracle's old one.
_METADATA: Final = frozenset(
    map(
        ipaddress.ip_address,
        ("fd00:ec2::254", "fd20:ce::254", "100.100.100.200", "168.63.129.16", "192.0.0.192"),
    )
)


def is_link_local(address: IPAddress) -> bool:
    """Whether `address` is in 169.254.0.0/16 or fe80::/10, also when an IPv6 form wraps the IPv4 address.

    Or the address of a cloud's credentials service elsewhere.
    """
    forms = (_plain(address), *_wrapped(address))
    return any(form.is_link_local or form in _METADATA for form in forms)


def _plain(address: IPAddress) -> IPAddress:
    """Without the zone of ``fe80::1%eth0``, which makes equal addresses differ."""
    return ipaddress.ip_address(address.packed)


def link_local_literal(host: str) -> bool:
    """Whether `host` is written as a link-local address. Names are judged when they are connected to."""
    try:
        return is_link_local(ipaddress.ip_address(host))
    except ValueError:
        return False


def _wrapped(address: IPAddress) -> tuple[ipaddress.IPv4Address, ...]:
    if isinstance(address, ipaddress.IPv4Address):
        return ()
    packed = address.packed
    found = [address.ipv4_mapped, address.sixtofour, *(address.teredo or ())]
    if any(address in prefix for prefix in _IN_THE_END) or packed[8:12] in _ISATAP:
        found.append(ipaddress.IPv4Address(packed[-4:]))
    if address in _LOCAL_NAT64:
        # RFC 6052: bits 64 to 71 are left out, so the address goes around them.
        places = (packed[6:8] + packed[9:11], packed[7:8] + packed[9:12], packed[9:13], packed[12:16])
        found += [ipaddress.IPv4Address(place) for place in places]
    return tuple(form for form in found if form is not None)
