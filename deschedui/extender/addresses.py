"""Which addresses an extender must not have: link-local ones, where clouds keep their credentials service."""

import ipaddress
from typing import Final

IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address

_NAT64: Final = ipaddress.IPv6Network("64:ff9b::/96")
_COMPATIBLE: Final = ipaddress.IPv6Network("::/96")


def is_link_local(address: IPAddress) -> bool:
    """Whether `address` is in 169.254.0.0/16 or fe80::/10, also when an IPv6 form wraps the IPv4 address."""
    return any(form.is_link_local for form in (address, *_wrapped(address)))


def link_local_literal(host: str) -> bool:
    """Whether `host` is written as a link-local address. Names are judged when they are connected to."""
    try:
        return is_link_local(ipaddress.ip_address(host))
    except ValueError:
        return False


def _wrapped(address: IPAddress) -> tuple[ipaddress.IPv4Address, ...]:
    if isinstance(address, ipaddress.IPv4Address):
        return ()
    found = [address.ipv4_mapped, address.sixtofour]
    if address in _NAT64 or address in _COMPATIBLE:
        found.append(ipaddress.IPv4Address(address.packed[-4:]))
    return tuple(form for form in found if form is not None)
