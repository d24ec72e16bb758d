//! The same statements from pgbench: as fast as PostgreSQL itself answers them to as many clients.

use std::{fmt::Write as _, path::Path, process::Stdio};

use anyhow::{Context as _, Result, ensure};
use tokio_postgres::{Client, NoTls, types::Type};

use crate::record::Sent;

/// Writes scripts; asks PostgreSQL how it writes a parameter.
pub struct Writer {
    client: Client,
}

impl Writer {
    pub async fn new(url: &str) -> Result<Self> {
        let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
        tokio::spawn(connection);
        Ok(Self { client })
    }

    /// A script that sends the statements once.
    pub async fn read(&self, sent: &[Sent]) -> Result<String> {
        self.script(sent, &[], b"").await
    }

    /// A script in which each client sends its own statements, with new ids each time.
    pub async fn rent(&self, clients: &[Vec<Sent>], fresh: &[(Vec<Vec<u8>>, Vec<u8>)]) -> Result<String> {
        let mut script = String::new();
        for (client, (sent, (fresh, key))) in clients.iter().zip(fresh).enumerate() {
            writeln!(script, "\\if :client_id = {client}")?;
            for number in 0..=fresh.len() {
                writeln!(script, "\\set fresh{number} random(1, 9000000000000000000)")?;
            }
            script.push_str(&self.script(sent, fresh, key).await?);
            writeln!(script, "\\endif")?;
        }
        Ok(script)
    }

    async fn script(&self, sent: &[Sent], fresh: &[Vec<u8>], key: &[u8]) -> Result<String> {
        let mut script = String::new();
        for sent in sent {
            match sent {
                Sent::Simple(sql) => writeln!(script, "{sql};")?,
                Sent::Execute { sql, types, values } => {
                    let mut literals = Vec::new();
                    for (oid, value) in types.iter().zip(values) {
                        literals.push(self.literal(*oid, value.as_deref(), fresh, key).await?);
                    }
                    writeln!(script, "{};", inlined(sql, &literals)?)?;
                }
            }
        }
        Ok(script)
    }

    async fn literal(&self, oid: u32, value: Option<&[u8]>, fresh: &[Vec<u8>], key: &[u8]) -> Result<String> {
        let kind = Type::from_oid(oid).context("an unknown type")?;
        let kind_name: String = self.client.query_one("SELECT format_type($1, NULL)", &[&oid]).await?.get(0);
        let Some(value) = value else { return Ok(format!("CAST(NULL AS {kind_name})")) };
        let statement = self.client.prepare_typed("SELECT $1::text", &[kind]).await?;
        let rows = self.client.query(&statement, &[&crate::bare::Raw(Some(value.to_vec()))]).await?;
        let text: String = rows.first().context("no row")?.get(0);
        let mut literal = quoted(&text);
        for (number, id) in fresh.iter().enumerate() {
            let id = uuid::Uuid::from_slice(id)?.to_string();
            let new = format!("' || CAST(CAST(lpad(to_hex(CAST(:fresh{number} AS bigint)), 32, '0') AS uuid) AS text) || E'");
            literal = literal.replace(&id, &new);
        }
        if !key.is_empty() {
            let new = format!("' || CAST(CAST(:fresh{} AS bigint) AS text) || E'", fresh.len());
            literal = literal.replace(std::str::from_utf8(key)?, &new);
        }
        Ok(format!("CAST({literal} AS {kind_name})"))
    }
}

/// Colons are escaped: pgbench would take what follows for a variable.
fn quoted(text: &str) -> String {
    format!("E'{}'", text.replace('\\', "\\\\").replace('\'', "''").replace(':', "\\x3a"))
}

fn inlined(sql: &str, literals: &[String]) -> Result<String> {
    let mut text = String::new();
    let mut parts = sql.split('$');
    text.push_str(parts.next().unwrap_or_default());
    for part in parts {
        let digits = part.bytes().take_while(u8::is_ascii_digit).count();
        let number: usize = part.get(..digits).unwrap_or_default().parse()?;
        text.push_str(literals.get(number - 1).context("a parameter without a value")?);
        text.push_str(part.get(digits..).unwrap_or_default());
    }
    Ok(text.lines().map(str::trim).collect::<Vec<_>>().join(" "))
}

/// Transactions a second of a script.
pub async fn run(bin_dir: &Path, url: &str, script: &Path, clients: usize, seconds: u64) -> Result<f64> {
    let (clients, seconds) = (clients.to_string(), seconds.to_string());
    tps(bin_dir, url, script, &["-c", &clients, "-T", &seconds]).await
}

/// The same of a script that each client runs `times` times; it counts them in `i` and knows how many there are as `share`.
pub async fn run_counted(bin_dir: &Path, url: &str, script: &Path, clients: u32, times: u32) -> Result<f64> {
    let (clients, share, times) = (clients.to_string(), format!("share={times}"), times.to_string());
    tps(bin_dir, url, script, &["-c", &clients, "-t", &times, "-D", "i=0", "-D", &share]).await
}

async fn tps(bin_dir: &Path, url: &str, script: &Path, arguments: &[&str]) -> Result<f64> {
    let script = script.to_str().context("a path that is no text")?;
    let output = tokio::process::Command::new(bin_dir.join("pgbench"))
        .args(["-n", "-M", "prepared", "-j", "1"])
        .args(arguments)
        .args(["-f", script, url])
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await?;
    let (said, fault) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    ensure!(output.status.success(), "pgbench: {fault}");
    let line = said.lines().find_map(|line| line.strip_prefix("tps = ")).with_context(|| format!("pgbench: {fault}"))?;
    Ok(line.split(' ').next().unwrap_or_default().parse()?)
}
