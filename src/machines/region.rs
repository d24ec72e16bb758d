//! Where a machine stands: an ISO 3166-1 country in lower case, optionally with a subdivision (`us-ca`).

use std::fmt;
use std::str::FromStr;

/// ISO 3166-1 alpha-2, the officially assigned codes.
const COUNTRIES: &str = "ad ae af ag ai al am ao aq ar as at au aw ax az ba bb bd be bf bg bh bi bj bl bm bn bo bq br bs bt bv bw by bz \
    ca cc cd cf cg ch ci ck cl cm cn co cr cu cv cw cx cy cz de dj dk dm do dz ec ee eg eh er es et fi fj fk fm fo fr ga gb gd ge gf gg gh \
    gi gl gm gn gp gq gr gs gt gu gw gy hk hm hn hr ht hu id ie il im in io iq ir is it je jm jo jp ke kg kh ki km kn kp kr kw ky kz la lb \
    lc li lk lr ls lt lu lv ly ma mc md me mf mg mh mk ml mm mn mo mp mq mr ms mt mu mv mw mx my mz na nc ne nf ng ni nl no np nr nu nz om \
    pa pe pf pg ph pk pl pm pn pr ps pt pw py qa re ro rs ru rw sa sb sc sd se sg sh si sj sk sl sm sn so sr ss st sv sx sy sz tc td tf tg \
    th tj tk tl tm tn to tr tt tv tw tz ua ug um us uy uz va vc ve vg vi vn vu wf ws ye yt za zm zw";
const SUBDIVISION_CHARS_MAX: usize = 8;

/// A checked region.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Region(String);

/// Why a text is no region.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a region is a lower-case ISO 3166 country code, optionally with a subdivision, such as us or us-ca")]
pub struct ParseRegionError;

impl Region {
    pub fn as_str(&self) -> &str {
        &self.0
    }
    pub fn country(&self) -> &str {
        self.0.get(..2).unwrap_or_default()
    }
    /// Whether it names a part of a country.
    pub fn has_subdivision(&self) -> bool {
        self.0.len() > 2
    }
}

impl FromStr for Region {
    type Err = ParseRegionError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (country, subdivision) = text.split_once('-').map_or((text, None), |(country, rest)| (country, Some(rest)));
        let is_part = |part: &str| {
            (1..=SUBDIVISION_CHARS_MAX).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
        };
        let known = country.len() == 2 && COUNTRIES.split_ascii_whitespace().any(|code| code == country);
        if known && subdivision.is_none_or(is_part) { Ok(Self(text.to_owned())) } else { Err(ParseRegionError) }
    }
}

impl fmt::Display for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
