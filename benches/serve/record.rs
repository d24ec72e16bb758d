//! What the server really sends to PostgreSQL: a proxy between the two that reads the frontend's messages. Peers repeat exactly that.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use anyhow::{Context as _, Result, bail};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

/// A statement as it was sent.
#[derive(Debug, Clone, PartialEq)]
pub enum Sent {
    /// `BEGIN`, `COMMIT`: the simple protocol.
    Simple(String),
    /// A prepared statement with its parameters in binary.
    Execute { sql: String, types: Vec<u32>, values: Vec<Option<Vec<u8>>> },
}

#[derive(Default)]
struct Log {
    sent: Vec<Sent>,
    parsed: Vec<String>,
}

/// The proxy; stands as long as the runtime does.
#[derive(Clone)]
pub struct Recorder {
    log: Arc<Mutex<Log>>,
    url: String,
}

impl Recorder {
    /// Listens on a free port in front of the database at `url`.
    pub async fn start(url: &str) -> Result<Self> {
        let mut address = url::Url::parse(url)?;
        let target = (address.host_str().context("no host")?.to_owned(), address.port().context("no port")?);
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let port = listener.local_addr()?.port();
        address.set_port(Some(port)).ok().context("no port can be set")?;
        let log = Arc::new(Mutex::new(Log::default()));
        let shared = Arc::clone(&log);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (target, log) = (target.clone(), Arc::clone(&shared));
                tokio::spawn(async move {
                    // A connection that ends is the normal case.
                    let _ended = forward(client, target, &log).await;
                });
            }
        });
        Ok(Self { log, url: address.into() })
    }

    /// Where the server connects instead.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// What was sent since the last call, and the statements that had to be prepared for it.
    pub fn take(&self) -> (Vec<Sent>, Vec<String>) {
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        let Log { sent, parsed } = std::mem::take(&mut *log);
        (sent, parsed)
    }
}

async fn forward(client: TcpStream, target: (String, u16), log: &Mutex<Log>) -> Result<()> {
    let server = TcpStream::connect(target).await?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let back = tokio::spawn(async move { tokio::io::copy(&mut from_server, &mut to_client).await });
    let startup_length = from_client.read_u32().await?;
    let mut startup = vec![0; usize::try_from(startup_length)?.saturating_sub(4)];
    from_client.read_exact(&mut startup).await?;
    to_server.write_u32(startup_length).await?;
    to_server.write_all(&startup).await?;
    let mut statements = HashMap::new();
    loop {
        let Ok(kind) = from_client.read_u8().await else { break };
        let length = from_client.read_u32().await?;
        let mut body = vec![0; usize::try_from(length)?.saturating_sub(4)];
        from_client.read_exact(&mut body).await?;
        note(kind, &body, &mut statements, log)?;
        let mut message = vec![kind];
        message.extend(length.to_be_bytes());
        message.extend(body);
        to_server.write_all(&message).await?;
    }
    to_server.shutdown().await?;
    back.await??;
    Ok(())
}

type Statements = HashMap<String, (String, Vec<u32>)>;

fn note(kind: u8, body: &[u8], statements: &mut Statements, log: &Mutex<Log>) -> Result<()> {
    let mut reader = Reader(body);
    let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
    match kind {
        b'P' => {
            let (name, sql) = (reader.text()?, reader.text()?);
            let types = (0..reader.u16()?).map(|_| reader.u32()).collect::<Result<_>>()?;
            log.parsed.push(sql.clone());
            statements.insert(name, (sql, types));
        }
        b'B' => {
            let (_portal, name) = (reader.text()?, reader.text()?);
            for _ in 0..reader.u16()? {
                if reader.u16()? != 1 {
                    bail!("a parameter that is not binary");
                }
            }
            let values = (0..reader.u16()?).map(|_| reader.value()).collect::<Result<_>>()?;
            let (sql, types) = statements.get(&name).cloned().context("a statement that was not parsed")?;
            log.sent.push(Sent::Execute { sql, types, values });
        }
        b'Q' => log.sent.push(Sent::Simple(reader.text()?)),
        _ => {}
    }
    Ok(())
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn bytes(&mut self, count: usize) -> Result<&[u8]> {
        let (head, rest) = self.0.split_at_checked(count).context("a message that is too short")?;
        self.0 = rest;
        Ok(head)
    }
    fn u16(&mut self) -> Result<u16> {
        Ok(u16::from_be_bytes(self.bytes(2)?.try_into()?))
    }
    fn u32(&mut self) -> Result<u32> {
        Ok(u32::from_be_bytes(self.bytes(4)?.try_into()?))
    }
    fn text(&mut self) -> Result<String> {
        let end = self.0.iter().position(|b| *b == 0).context("a text without an end")?;
        let text = String::from_utf8(self.bytes(end)?.to_vec())?;
        self.bytes(1)?;
        Ok(text)
    }
    fn value(&mut self) -> Result<Option<Vec<u8>>> {
        let length = self.u32()?;
        if length == u32::MAX {
            return Ok(None);
        }
        Ok(Some(self.bytes(usize::try_from(length)?)?.to_vec()))
    }
}
