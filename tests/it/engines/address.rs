//! The table of addresses: what text is taken, and where no connection may go.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use proptest::prelude::*;
use rigmark::base::Code;
use rigmark::engines::{AddressFault, EngineAddress, rules};

#[test]
fn text_becomes_an_address_without_trailing_slash() {
    for (text, shown, models) in [
        ("http://gpu.example.org:8000", "http://gpu.example.org:8000", "http://gpu.example.org:8000/v1/models"),
        ("https://gpu.example.org/", "https://gpu.example.org", "https://gpu.example.org/v1/models"),
        ("https://Host.Example/engine/a/", "https://host.example/engine/a", "https://host.example/engine/a/v1/models"),
        ("http://[2606:4700::1111]:9/x", "http://[2606:4700::1111]:9/x", "http://[2606:4700::1111]:9/x/v1/models"),
        ("http://v1.example.org/v12", "http://v1.example.org/v12", "http://v1.example.org/v12/v1/models"),
    ] {
        let address = EngineAddress::parse(text).unwrap();
        assert_eq!(address.to_string(), shown);
        assert_eq!(address.join("/v1/models").as_str(), models);
    }
}

#[test]
fn other_text_is_refused_with_the_reason() {
    for (text, fault) in [
        ("", AddressFault::NotAUrl),
        ("gpu.example.org:8000", AddressFault::Scheme),
        ("example.org", AddressFault::NotAUrl),
        ("ftp://example.org", AddressFault::Scheme),
        ("file:///etc/passwd", AddressFault::Scheme),
        ("http://user@example.org", AddressFault::Credentials),
        ("http://user:pw@example.org", AddressFault::Credentials),
        ("http://example.org@127.0.0.1", AddressFault::Credentials),
        ("http://example.org/?a=1", AddressFault::QueryOrFragment),
        ("http://example.org/#a", AddressFault::QueryOrFragment),
        ("http://example.org/v1", AddressFault::VersionSuffix),
        ("http://example.org/v1/", AddressFault::VersionSuffix),
        ("http://example.org/a/v1", AddressFault::VersionSuffix),
        ("http://example.org:0", AddressFault::Port),
        ("http://example.org:99999", AddressFault::NotAUrl),
        ("http://", AddressFault::NotAUrl),
        ("http://exa mple.org", AddressFault::NotAUrl),
        ("http://example.org\n", AddressFault::NotAUrl),
        ("http:\\\\example.org", AddressFault::NotAUrl),
        ("http://1.2.3.4.5", AddressFault::NotAUrl),
        ("http://256.0.0.1", AddressFault::NotAUrl),
        // Zone ids, a number too large, a host that only looks like one, a user part that hides the host.
        ("http://[fe80::1%25eth0]", AddressFault::NotAUrl),
        ("http://[fe80::1%eth0]", AddressFault::NotAUrl),
        ("http://[::1", AddressFault::NotAUrl),
        ("http://[::ffff:256.0.0.1]", AddressFault::NotAUrl),
        ("http://4294967296", AddressFault::NotAUrl),
        ("http://0x1ffffffff", AddressFault::NotAUrl),
        ("http://0400.0.0.1", AddressFault::NotAUrl),
        ("http://169.254.169.254:80@example.org", AddressFault::Credentials),
        ("http://example.org:80@169.254.169.254", AddressFault::Credentials),
        ("http://example.org%00.localhost", AddressFault::NotAUrl),
        ("gopher://169.254.169.254", AddressFault::Scheme),
    ] {
        assert_eq!(EngineAddress::parse(text), Err(fault), "{text:?}");
    }
    let long = format!("http://example.org/{}", "a".repeat(600));
    assert_eq!(EngineAddress::parse(&long), Err(AddressFault::TooLong));
}

#[test]
fn addresses_that_are_not_public_are_refused_in_every_spelling() {
    for host in [
        "127.0.0.1",
        "127.255.255.254",
        "127.1",
        "2130706433",
        "0x7f000001",
        "0x7f.1",
        "0177.0.0.1",
        "017700000001",
        "127.0.0.1.",
        "2130706433.",
        "0177.1",
        "127.0x1",
        "0x7f.0x0.0x0.0x1",
        "0000000177.0.0.1",
        // Other spellings of the same digits and dots: percent, full width, the ideographic full stop.
        "%31%32%37.0.0.1",
        "\u{ff11}\u{ff12}\u{ff17}.0.0.1",
        "127\u{3002}0\u{3002}0\u{3002}1",
        "\u{2460}\u{2461}\u{2466}.0.0.1",
        "0",
        "0.0.0.0",
        "0.1.2.3",
        "10.0.0.1",
        "172.16.0.1",
        "172.31.255.255",
        "192.168.1.1",
        "169.254.169.254",
        "0xa9fea9fe",
        "2852039166",
        "0251.0376.0251.0376",
        "0xA9.0xFE.0xA9.0xFE",
        "025177524776",
        "169.254.43518",
        "169.16689662",
        "169.254.0.1",
        "100.64.0.1",
        "100.127.255.255",
        "100.100.100.200",
        "192.0.0.192",
        "192.0.2.1",
        "198.51.100.7",
        "203.0.113.7",
        "192.88.99.1",
        "198.18.0.1",
        "198.19.255.255",
        "168.63.129.16",
        "224.0.0.1",
        "239.255.255.255",
        "240.0.0.1",
        "255.255.255.255",
        "[::]",
        "[::1]",
        "[::127.0.0.1]",
        "[::8.8.8.8]",
        "[::ffff:127.0.0.1]",
        "[::ffff:10.1.2.3]",
        "[::ffff:169.254.169.254]",
        "[::ffff:a9fe:a9fe]",
        "[0:0:0:0:0:ffff:7f00:1]",
        "[0000:0000:0000:0000:0000:0000:0000:0001]",
        "[::FFFF:127.0.0.1]",
        "[64:ff9b::a9fe:a9fe]",
        "[64:ff9b:0:0:0:1:808:808]",
        "[2002:c0a8:101::1]",
        "[2001:0:7f00:1::]",
        "[::ffff:0:127.0.0.1]",
        "[64:ff9b::7f00:1]",
        "[64:ff9b::10.0.0.1]",
        "[64:ff9b:1::1]",
        "[2002:7f00:1::]",
        "[2002:a9fe:a9fe::1]",
        "[2002:808:808::1]",
        "[2001::1]",
        "[2001:db8::1]",
        "[3fff::1]",
        "[100::1]",
        "[5f00::1]",
        "[fc00::1]",
        "[fd00:ec2::254]",
        "[fe80::1]",
        "[febf::1]",
        "[fec0::1]",
        "[ff02::1]",
        "[4000::1]",
    ] {
        let address = EngineAddress::parse(&format!("http://{host}:8000")).unwrap_or_else(|e| panic!("{host}: {e}"));
        let error = address.check_literal(false).expect_err(host);
        assert_eq!(error.code(), Code::ForbiddenAddress, "{host}");
        assert!(address.check_literal(true).is_ok(), "{host}");
    }
}

#[test]
fn public_addresses_and_neighbours_of_forbidden_ranges_pass() {
    for host in [
        "8.8.8.8",
        "1.1.1.1",
        "9.255.255.255",
        "11.0.0.0",
        "126.255.255.255",
        "128.0.0.1",
        "172.15.255.255",
        "172.32.0.1",
        "192.167.255.255",
        "192.169.0.0",
        "169.253.255.255",
        "169.255.0.0",
        "100.63.255.255",
        "100.128.0.0",
        "192.0.1.1",
        "192.0.3.0",
        "198.17.255.255",
        "198.20.0.0",
        "223.255.255.255",
        "[2606:4700::1111]",
        "[2001:4860:4860::8888]",
        "[2a00::1]",
        "[64:ff9b::8.8.8.8]",
        "[::ffff:8.8.8.8]",
    ] {
        let address = EngineAddress::parse(&format!("https://{host}")).unwrap();
        assert!(address.check_literal(false).is_ok(), "{host}");
    }
}

proptest! {
    /// What the standard library calls special is refused, and an IPv4 address stays what it is inside a mapped or NAT64 address.
    #[test]
    fn every_ipv4_address_keeps_its_kind_inside_ipv6(bits: u32) {
        let v4 = Ipv4Addr::from(bits);
        let forbidden = rules::forbidden(v4.into());
        if v4.is_private() || v4.is_loopback() || v4.is_link_local() || v4.is_multicast() || v4.is_broadcast()
            || v4.is_documentation() || v4.is_unspecified() {
            prop_assert!(forbidden.is_some());
        }
        prop_assert_eq!(rules::forbidden(v4.to_ipv6_mapped().into()), forbidden);
        let [a, b, c, d] = v4.octets();
        let nat64 = Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
        prop_assert_eq!(rules::forbidden(nat64.into()), forbidden);
    }

    /// Nothing outside 2000::/3 passes, but IPv4 in one of its two wrappings.
    #[test]
    fn ipv6_outside_the_public_block_is_refused(bits: u128) {
        let v6 = Ipv6Addr::from(bits);
        if v6.segments()[0] & 0xe000 != 0x2000 && v6.to_ipv4_mapped().is_none() && v6.segments()[0] != 0x64 {
            prop_assert!(rules::forbidden(IpAddr::V6(v6)).is_some());
        }
    }

    /// Whatever text comes, parsing does not panic, and what it takes it takes again from its own print.
    #[test]
    fn parsing_is_stable(text in "(http|https)://[a-z0-9.\\[\\]:%/-]{0,40}") {
        if let Ok(address) = EngineAddress::parse(&text) {
            prop_assert_eq!(EngineAddress::parse(&address.to_string()), Ok(address));
        }
    }
}
