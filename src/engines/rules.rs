//! Which addresses of the internet an engine may have: public unicast ones. Everything with a special meaning is refused, also when an
//! IPv4 address is wrapped in an IPv6 one.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Why the address must not be reached, or `None` for a public one.
pub fn forbidden(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(v4) => forbidden_v4(v4),
        IpAddr::V6(v6) => forbidden_v6(v6),
    }
}

fn forbidden_v4(address: Ipv4Addr) -> Option<&'static str> {
    match address.octets() {
        [0, ..] => Some("unspecified"),
        [127, ..] => Some("loopback"),
        [10, ..] | [192, 168, ..] => Some("private"),
        [172, b, ..] if b & 0xf0 == 16 => Some("private"),
        // Includes the metadata address of the large clouds, 169.254.169.254.
        [169, 254, ..] => Some("link-local"),
        [100, b, ..] if b & 0xc0 == 64 => Some("carrier-grade NAT"),
        // Metadata address of Alibaba (100.100.100.200) is within the range above; Oracle's (192.0.0.192) within this one.
        [192, 0, 0, _] => Some("protocol assignment"),
        [192, 0, 2, _] | [198, 51, 100, _] | [203, 0, 113, _] => Some("documentation"),
        [192, 88, 99, _] => Some("6to4 relay"),
        [198, b, ..] if b & 0xfe == 18 => Some("benchmarking"),
        // Azure's platform address is public by number only.
        [168, 63, 129, 16] => Some("metadata"),
        [a, ..] if a & 0xf0 == 224 => Some("multicast"),
        [a, ..] if a >= 240 => Some("reserved"),
        _ => None,
    }
}

fn forbidden_v6(address: Ipv6Addr) -> Option<&'static str> {
    let s = address.segments();
    let tail = v4_of(s[6], s[7]);
    match s {
        [0, 0, 0, 0, 0, 0, 0, 0] => Some("unspecified"),
        [0, 0, 0, 0, 0, 0, 0, 1] => Some("loopback"),
        // IPv4-mapped, the one wrapped form that operating systems really connect as IPv4.
        [0, 0, 0, 0, 0, 0xffff, ..] => forbidden_v4(tail),
        // IPv4-compatible, SIIT (::ffff:0:a.b.c.d) and the rest of ::/8: reserved, never a host on the internet.
        [0..=0xff, ..] if s[0] != 0x64 => Some("reserved"),
        [0x64, 0xff9b, 0, 0, 0, 0, ..] => forbidden_v4(tail),
        // Local-use NAT64 prefix, and the discard prefixes beside it.
        [0x64, ..] | [0x100, 0, ..] => Some("reserved"),
        [0x2002, a, b, ..] => forbidden_v4(v4_of(a, b)).or(Some("6to4")),
        // Teredo, ORCHID, benchmarking and the other protocol assignments.
        [0x2001, b, ..] if b < 0x200 => Some("protocol assignment"),
        [0x2001, 0xdb8, ..] => Some("documentation"),
        [0x3fff, b, ..] if b < 0x1000 => Some("documentation"),
        [0x5f00, ..] => Some("segment routing"),
        // Unique local; includes fd00:ec2::254, the metadata address.
        [a, ..] if a & 0xfe00 == 0xfc00 => Some("private"),
        [a, ..] if a & 0xffc0 == 0xfe80 => Some("link-local"),
        [a, ..] if a & 0xffc0 == 0xfec0 => Some("site-local"),
        [a, ..] if a & 0xff00 == 0xff00 => Some("multicast"),
        // Only 2000::/3 is given out.
        [a, ..] if a & 0xe000 != 0x2000 => Some("reserved"),
        _ => None,
    }
}

fn v4_of(high: u16, low: u16) -> Ipv4Addr {
    let [a, b] = high.to_be_bytes();
    let [c, d] = low.to_be_bytes();
    Ipv4Addr::new(a, b, c, d)
}
