//! The secrets of a process: given by the environment, or in the sandbox made once and kept in the data directory with mode 0600.

use std::{fs, io::Write, os::unix::fs::OpenOptionsExt, path::Path};

use super::{JwtKey, Keys, Mode, wrong};
use crate::base::{Error, Result, secret::Secret};

const SECRET_CHARS_MIN: usize = 32;

pub(super) fn load(mode: Mode, data_dir: &Path, jwt: Option<&str>, root: Option<&str>) -> Result<Keys> {
    let jwt_text = match jwt.filter(|s| !s.is_empty()) {
        Some(text) => text.to_owned(),
        None if mode.is_sandbox() => read_or_make(data_dir, "jwt-secret")?,
        None => return Err(wrong("RIGMARK_JWT_SECRET is required outside the sandbox.")),
    };
    let root = match root.filter(|s| !s.is_empty()) {
        Some(text) => text.to_owned(),
        None if mode.is_sandbox() => read_or_make(data_dir, "encryption-key")?,
        None => return Err(wrong("RIGMARK_ENCRYPTION_KEY is required outside the sandbox.")),
    };
    if root.len() < SECRET_CHARS_MIN {
        return Err(wrong("RIGMARK_ENCRYPTION_KEY must have at least 32 characters."));
    }
    Ok(Keys { jwt: parse_jwt_keys(&jwt_text)?, root: Secret::new(root.into_bytes()) })
}

fn parse_jwt_keys(text: &str) -> Result<Vec<JwtKey>> {
    let mut keys: Vec<JwtKey> = Vec::new();
    for part in text.split(',') {
        let (kid, secret) = part.split_once(':').unwrap_or(("default", part));
        if secret.len() < SECRET_CHARS_MIN {
            return Err(wrong("Each key in RIGMARK_JWT_SECRET must have at least 32 characters."));
        }
        if keys.iter().any(|k| k.kid == kid) {
            return Err(wrong("The key ids in RIGMARK_JWT_SECRET must differ."));
        }
        keys.push(JwtKey { kid: kid.to_owned(), secret: Secret::new(secret.as_bytes().to_vec()) });
    }
    Ok(keys)
}

/// Reads `data_dir/name`, or makes it. Two processes that start at once end with the same secret: the file is linked into place whole.
fn read_or_make(data_dir: &Path, name: &str) -> Result<String> {
    fs::create_dir_all(data_dir).map_err(Error::internal)?;
    let path = data_dir.join(name);
    if let Ok(text) = fs::read_to_string(&path) {
        return Ok(text.trim().to_owned());
    }
    let secret = data_encoding::HEXLOWER.encode(&rand::random::<[u8; 32]>());
    let draft = data_dir.join(format!(".{name}-{}", uuid::Uuid::new_v4()));
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft).map_err(Error::internal)?;
    file.write_all(secret.as_bytes()).map_err(Error::internal)?;
    file.sync_all().map_err(Error::internal)?;
    let linked = fs::hard_link(&draft, &path);
    fs::remove_file(&draft).map_err(Error::internal)?;
    match linked {
        Ok(()) => Ok(secret),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            fs::read_to_string(&path).map(|t| t.trim().to_owned()).map_err(Error::internal)
        }
        Err(error) => Err(Error::internal(error)),
    }
}
