//! Passwords: argon2id behind a gate, with the same work whether there is a hash to compare with or not.
//!
//! Invariants: a password is hashed only through `Ctx::password_hashing` (off the async threads, one a core); never inside a transaction.

use argon2::{
    Algorithm, Argon2, Params, Version,
    password_hash::{PasswordHasher, PasswordVerifier, phc::PasswordHash},
};
use unicode_normalization::UnicodeNormalization;

use crate::{
    base::{Error, FieldError, Result, secret::Secret},
    ctx::Ctx,
};

const CHARS_MIN: usize = 8;
const CHARS_MAX: usize = 256;
/// OWASP's first choice for argon2id: 19 MiB (`Config::argon2_memory_kib`), two passes, one lane.
const PASSES: u32 = 2;
const LANES: u32 = 1;
/// The most used passwords of eight and more characters: what a guesser tries first.
#[rustfmt::skip]
const COMMON: &[&str] = &[
    "password",
    "password1",
    "password12",
    "password123",
    "passw0rd",
    "12345678",
    "123456789",
    "1234567890",
    "qwertyuiop",
    "qwerty123",
    "iloveyou",
    "sunshine",
    "princess",
    "football",
    "baseball",
    "superman",
    "trustno1",
    "letmein1",
    "welcome1",
    "admin123",
    "abc12345",
    "11111111",
    "00000000",
    "1q2w3e4r",
    "1qaz2wsx",
    "qwertyui",
    "asdfghjk",
    "changeme",
    "computer",
    "whatever",
];

/// Checks a new password: 8 to 256 characters, and outside the sandbox not one of the most used.
///
/// # Errors
/// The fault, at `pointer`.
pub(super) fn check_new(ctx: &Ctx, password: &Secret<String>, pointer: &str) -> std::result::Result<(), FieldError> {
    let text = password.expose();
    let length = text.chars().count();
    if !(CHARS_MIN..=CHARS_MAX).contains(&length) {
        return Err(FieldError::new(pointer, "length", format!("A password has {CHARS_MIN} to {CHARS_MAX} characters.")));
    }
    if !ctx.config.mode.is_sandbox() && COMMON.contains(&text.to_lowercase().as_str()) {
        return Err(FieldError::new(pointer, "common_password", "This password is one of the most used; choose another."));
    }
    Ok(())
}

/// # Errors
/// `unavailable` when too many hashes are being made.
pub(super) async fn hash(ctx: &Ctx, password: &Secret<String>) -> Result<String> {
    let (argon2, password) = (argon2(ctx)?, normal(password));
    let hashed = ctx.password_hashing.run(move || argon2.hash_password(&password).map(|hash| hash.to_string())).await?;
    hashed.map_err(|e| Error::internal(e.to_string()))
}

/// Whether `password` is the one behind `stored`. Without `stored` the answer is no, after the same work.
///
/// # Errors
/// `unavailable` when too many hashes are being made; `internal` when `stored` is no hash.
pub(super) async fn verify(ctx: &Ctx, password: &Secret<String>, stored: Option<String>) -> Result<bool> {
    // No user can be given more than the largest password; a longer one must not cost more than that.
    let too_long = password.expose().chars().count() > CHARS_MAX;
    let password = if too_long { Vec::new() } else { normal(password) };
    let known = stored.is_some() && !too_long;
    let stored = stored.unwrap_or_else(|| dummy(ctx.config.argon2_memory_kib));
    let verified = ctx
        .password_hashing
        .run(move || {
            let parsed = PasswordHash::new(&stored).map_err(|e| e.to_string())?;
            Ok::<_, String>(Argon2::default().verify_password(&password, &parsed).is_ok())
        })
        .await?;
    Ok(verified.map_err(Error::internal)? && known)
}

/// Whether `stored` was made with other parameters than today's.
pub(super) fn is_outdated(ctx: &Ctx, stored: &str) -> bool {
    !stored.starts_with(&head(ctx.config.argon2_memory_kib))
}

fn head(memory_kib: u32) -> String {
    format!("$argon2id$v=19$m={memory_kib},t={PASSES},p={LANES}$")
}

/// A hash of today's cost that no password is known for.
fn dummy(memory_kib: u32) -> String {
    format!("{}AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", head(memory_kib))
}

fn argon2(ctx: &Ctx) -> Result<Argon2<'static>> {
    let params = Params::new(ctx.config.argon2_memory_kib, PASSES, LANES, None).map_err(|e| Error::internal(e.to_string()))?;
    Ok(Argon2::new(Algorithm::Argon2id, Version::V0x13, params))
}

/// One keyboard writes é as one character, another as two: both are the same password.
fn normal(password: &Secret<String>) -> Vec<u8> {
    password.expose().nfkc().collect::<String>().into_bytes()
}
