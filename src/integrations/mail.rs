//! Outgoing mail. Delivered by jobs, after the transaction that caused it.
//!
//! Without an SMTP server (the only way so far; SMTP comes with `SMTP_URL` and lettre) a letter is a file in `mail` under the data directory, and
//! the log says which. Neither the log nor the file's name holds an address or the text.

use std::{fmt, path::Path};

use tokio::io::AsyncWriteExt;

use crate::base::{Error, Result};

/// A letter in plain text. `Debug` shows neither the address nor the text, which may hold a secret link.
pub struct Mail {
    pub to: String,
    pub subject: String,
    pub text: String,
}

impl fmt::Debug for Mail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mail").field("subject", &self.subject).finish_non_exhaustive()
    }
}

/// Delivers a letter. `key` names it: delivering the same key again replaces the file, so that a job may be run twice.
///
/// # Errors
/// `internal` when the file cannot be written or a head line would break into two.
pub async fn deliver(data_dir: &Path, key: &str, mail: &Mail) -> Result<()> {
    if [&mail.to, &mail.subject].iter().any(|line| line.contains(['\r', '\n'])) {
        return Err(Error::internal("a line break in the head of a letter"));
    }
    let folder = data_dir.join("mail");
    let mut builder = tokio::fs::DirBuilder::new();
    builder.recursive(true).mode(0o700).create(&folder).await.map_err(Error::internal)?;
    let (draft, path) = (folder.join(format!(".{key}")), folder.join(format!("{key}.txt")));
    let mut options = tokio::fs::OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(&draft).await.map_err(Error::internal)?;
    let content = format!("To: {}\nSubject: {}\n\n{}\n", mail.to, mail.subject, mail.text);
    file.write_all(content.as_bytes()).await.map_err(Error::internal)?;
    file.sync_all().await.map_err(Error::internal)?;
    tokio::fs::rename(&draft, &path).await.map_err(Error::internal)?;
    tracing::info!(mail.path = %path.display(), mail.subject = mail.subject, "mail written");
    Ok(())
}
