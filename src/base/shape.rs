//! Shapes of texts and numbers as the OpenAPI document states them: patterns, closed lists, bounds. They only describe; whoever reads a text checks it.

use std::borrow::Cow;

use utoipa::{
    PartialSchema, ToSchema,
    openapi::{
        RefOr,
        schema::{ObjectBuilder, Schema, Type},
    },
};

/// A text that is one of `values`.
pub fn closed<'a>(values: impl IntoIterator<Item = &'a str>, description: &str) -> RefOr<Schema> {
    let values: Vec<String> = values.into_iter().map(str::to_owned).collect();
    ObjectBuilder::new().schema_type(Type::String).enum_values(Some(values)).description(Some(description)).into()
}

macro_rules! shapes {
    ($($(#[doc = $doc:literal])* $name:ident $pattern:literal $chars_min:literal $chars_max:literal $example:literal;)*) => {$(
        $(#[doc = $doc])*
        pub enum $name {}
        impl PartialSchema for $name {
            fn schema() -> RefOr<Schema> {
                ObjectBuilder::new()
                    .schema_type(Type::String)
                    .description(Some([$($doc.trim()),*].join("\n")))
                    .pattern(Some($pattern))
                    .min_length(Some($chars_min))
                    .max_length(Some($chars_max))
                    .examples([$example])
                    .into()
            }
        }
        impl ToSchema for $name {
            fn name() -> Cow<'static, str> {
                stringify!($name).into()
            }
        }
    )*};
}

macro_rules! integers {
    ($($(#[doc = $doc:literal])* $name:ident $minimum:literal $maximum:literal $example:literal;)*) => {$(
        $(#[doc = $doc])*
        pub enum $name {}
        impl PartialSchema for $name {
            fn schema() -> RefOr<Schema> {
                ObjectBuilder::new()
                    .schema_type(Type::Integer)
                    .description(Some([$($doc.trim()),*].join("\n")))
                    .minimum(Some($minimum))
                    .maximum(Some($maximum))
                    .examples([$example])
                    .into()
            }
        }
        impl ToSchema for $name {
            fn name() -> Cow<'static, str> {
                stringify!($name).into()
            }
        }
    )*};
}

integers! {
    /// A context length to compute for, in tokens.
    ContextTokens 0 100_000_000 16_384;
    /// Requests at once.
    ConcurrencyLevel 1 4_096 8;
}

shapes! {
    /// Id of an account: `usr_…` for a person, `org_…` for a team.
    AccountIdText "^(?:usr|org)_[0-7][0-9a-hjkmnp-tv-z]{25}$" 30 30 "usr_01h455vb4pex5vsknk084sn02q";
    /// Handle of a person or a team: 3 to 39 letters a-z, digits and single hyphens; one namespace. Read in any case, with or without `@`.
    HandleText "^@?[A-Za-z0-9](?:-?[A-Za-z0-9])+$" 3 40 "ada";
    /// A price or an amount above zero, in US dollars: a decimal text with at most six decimals, at most a million.
    PriceText "^(?:1000000(?:\\.0{1,6})?|[1-9][0-9]{0,5}(?:\\.[0-9]{1,6})?|0\\.(?:[1-9][0-9]{0,5}|0[1-9][0-9]{0,4}|00[1-9][0-9]{0,3}|000[1-9][0-9]{0,2}|0{4}[1-9][0-9]?|0{5}[1-9]))$" 1 14 "0.37";
    /// An amount above zero, in US dollars: a decimal text with at most six decimals, at most a milliard.
    CapText "^(?:1000000000(?:\\.0{1,6})?|[1-9][0-9]{0,8}(?:\\.[0-9]{1,6})?|0\\.(?:[1-9][0-9]{0,5}|0[1-9][0-9]{0,4}|00[1-9][0-9]{0,3}|000[1-9][0-9]{0,2}|0{4}[1-9][0-9]?|0{5}[1-9]))$" 1 17 "5.00";
    /// An amount of zero or more, in US dollars: a decimal text with at most six decimals, at most a milliard.
    LimitText "^(?:1000000000(?:\\.0{1,6})?|(?:0|[1-9][0-9]{0,8})(?:\\.[0-9]{1,6})?)$" 1 17 "0.50";
    /// What a person or a team is called: none of the characters is a control character or invisible; not empty when trimmed.
    NameText "^[^\\x00-\\x1f\\x7f-\\x9f]*[^\\s\\x00-\\x1f\\x7f-\\x9f][^\\x00-\\x1f\\x7f-\\x9f]*$" 1 80 "Ada Lovelace";
    /// SHA-256, in lower-case hexadecimal.
    Sha256Text "^[0-9a-f]{64}$" 64 64 "781d16384b857d1c7905c4954e5e83161161800fe6d1859ae79fe2cc5b0363a9";
    /// A token of a mailed link or a session.
    TokenText "" 1 4096 "3sC1yUEd0hZyZr0TqgVxkQ";
    /// A lower-case ISO 3166 country code, optionally with `-` and a subdivision.
    RegionText "^[a-z]{2}(?:-[a-z0-9]{1,8})?$" 2 11 "us-ca";
    /// An instant of RFC 3339, or a date for a whole UTC day.
    InstantOrDateText "^[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[Tt ][0-9]{2}:[0-9]{2}:[0-9]{2}(?:\\.[0-9]{1,9})?(?:[Zz]|[+-][0-9]{2}:[0-9]{2}))?$" 10 35 "2026-11-30";
    /// Stripe's id of a payment method.
    PaymentMethodText "^pm_[A-Za-z0-9_]+$" 4 255 "pm_1SXk2eLkdIwHu7ix0YbM9nq4";
    /// A UTC month.
    MonthText "^[0-9]{4}-(?:0[1-9]|1[0-2])$" 7 7 "2026-11";
    /// New for each effect that is meant; a repeat with it gets the first answer.
    IdempotencyKeyText "^[!-~](?:[ -~]*[!-~])?$" 1 255 "c0c7c4a2-0d5b-4a37-9d8f-3f0f3a6c1f11";
    /// A number of tokens: `16384`, `16k` (1024 each) or `1m`.
    ContextText "^[0-9]+[kKmM]?$" 1 64 "16k";
}
