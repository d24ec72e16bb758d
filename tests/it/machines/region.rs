//! What is a region.

use rigmark::machines::Region;

#[test]
fn countries_of_the_closed_list_with_or_without_a_part() {
    for (text, country, has_part) in [("us", "us", false), ("us-ca", "us", true), ("kr-11", "kr", true), ("de-by", "de", true)] {
        let region: Region = text.parse().unwrap();
        assert_eq!((region.as_str(), region.country(), region.has_subdivision()), (text, country, has_part));
    }
    for text in ["", "u", "US", "uk", "xx", "usa", "us-", "us-CA", "us-ca-sf", "us_ca", "us ca", "-ca", "us-abcdefghi", "ﬁ"] {
        assert!(text.parse::<Region>().is_err(), "{text:?}");
    }
}
