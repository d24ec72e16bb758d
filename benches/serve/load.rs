//! The clients: a fixed number of keep-alive connections on one thread of their own, each with its next request as soon as it has its answer.

use std::{
    net::{Ipv4Addr, SocketAddr, SocketAddrV4},
    sync::{
        Arc,
        atomic::{AtomicU32, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail, ensure};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpSocket, TcpStream},
};

/// Strangers may send 6,000 requests a minute from one address; a connection takes the next address of the loopback net before that.
const REQUESTS_PER_ADDRESS: u32 = 5_000;
static ADDRESSES: AtomicU32 = AtomicU32::new(0);
static UNIQUE: AtomicU64 = AtomicU64::new(0);

/// A number that no request had before.
pub fn unique() -> u64 {
    UNIQUE.fetch_add(1, Ordering::Relaxed)
}

/// What a client does again and again.
#[derive(Clone)]
pub enum Work {
    /// `{n}` in the path becomes six digits that no request has had for long, so that nothing is answered from a cache.
    Get { path: String },
    /// Creates a rental and stops it, as the renter of each client.
    Rent { renters: Arc<Vec<Renter>> },
    /// The same statements through the bare driver.
    RentBare,
}

#[derive(Clone)]
pub struct Renter {
    pub key: String,
    pub listing: String,
}

pub struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
    server: SocketAddr,
    left: u32,
}

impl Connection {
    pub async fn open(server: SocketAddr) -> Result<Self> {
        Ok(Self { stream: connect(server).await?, buffer: Vec::with_capacity(65_536), server, left: REQUESTS_PER_ADDRESS })
    }

    /// Sends a request and returns the body of its answer, which must be a success.
    pub async fn call(&mut self, request: &[u8]) -> Result<&[u8]> {
        if self.left == 0 {
            self.stream = connect(self.server).await?;
            self.left = REQUESTS_PER_ADDRESS;
        }
        self.left -= 1;
        self.stream.write_all(request).await?;
        self.buffer.clear();
        let (head, length) = loop {
            ensure!(self.stream.read_buf(&mut self.buffer).await? > 0, "the server hung up");
            if let Some(head) = self.buffer.windows(4).position(|w| w == b"\r\n\r\n") {
                break (head + 4, content_length(&self.buffer[..head])?);
            }
        };
        while self.buffer.len() < head + length {
            ensure!(self.stream.read_buf(&mut self.buffer).await? > 0, "the server hung up");
        }
        let status = self.buffer.get(9..12).unwrap_or_default();
        if !status.starts_with(b"2") {
            bail!("{}", String::from_utf8_lossy(&self.buffer));
        }
        Ok(&self.buffer[head..head + length])
    }
}

async fn connect(server: SocketAddr) -> Result<TcpStream> {
    let number = ADDRESSES.fetch_add(1, Ordering::Relaxed);
    let address = Ipv4Addr::from(u32::from(Ipv4Addr::new(127, 1, 0, 1)) + number);
    let socket = TcpSocket::new_v4()?;
    socket.bind(SocketAddrV4::new(address, 0).into())?;
    let stream = socket.connect(server).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

fn content_length(head: &[u8]) -> Result<usize> {
    let text = std::str::from_utf8(head)?.to_ascii_lowercase();
    let value = text.lines().find_map(|line| line.strip_prefix("content-length:")).context("no Content-Length")?;
    Ok(value.trim().parse()?)
}

/// As many as a price has decimals; they come again when every cached answer has long expired.
fn fresh_digits() -> String {
    format!("{:06}", unique() % 1_000_000)
}

pub fn get(path: &str) -> Vec<u8> {
    format!("GET {} HTTP/1.1\r\nHost: bench\r\n\r\n", path.replace("{n}", &fresh_digits())).into_bytes()
}

/// The requests that create and stop a rental: the second of the answer to the first.
pub fn create(renter: &Renter, idempotency_key: &str) -> Vec<u8> {
    let body = format!("{{\"listing_id\":\"{}\"}}", renter.listing);
    format!(
        "POST /api/v1/rentals HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer {}\r\nIdempotency-Key: {idempotency_key}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        renter.key,
        body.len()
    )
    .into_bytes()
}
pub fn stop(renter: &Renter, rental: &str) -> Vec<u8> {
    format!(
        "POST /api/v1/rentals/{rental}/stop HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer {}\r\nContent-Length: 0\r\n\r\n",
        renter.key
    )
    .into_bytes()
}

async fn once(work: &Work, client: usize, connection: &mut Connection) -> Result<()> {
    match work {
        Work::Get { path } => connection.call(&get(path)).await.map(drop),
        Work::Rent { renters } => {
            let renter = renters.get(client).context("no renter")?;
            let answer = connection.call(&create(renter, &format!("bench-{}", unique()))).await?;
            let rental: serde_json::Value = serde_json::from_slice(answer)?;
            let id = rental["id"].as_str().context("no id")?.to_owned();
            connection.call(&stop(renter, &id)).await.map(drop)
        }
        Work::RentBare => {
            for step in 0..2 {
                let request = format!("POST /api/v1/bench/rent/{client}/{step} HTTP/1.1\r\nHost: bench\r\nContent-Length: 0\r\n\r\n");
                connection.call(request.as_bytes()).await?;
            }
            Ok(())
        }
    }
}

/// How many times a second `clients` together did the work, over `length`.
pub async fn run(server: SocketAddr, work: Work, clients: usize, length: Duration) -> Result<f64> {
    tokio::task::spawn_blocking(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            let start = Instant::now();
            let deadline = start + length;
            let each = (0..clients).map(|client| {
                let work = work.clone();
                async move {
                    let mut connection = Connection::open(server).await?;
                    let mut done = 0_u32;
                    while Instant::now() < deadline {
                        once(&work, client, &mut connection).await?;
                        done += 1;
                    }
                    Ok::<_, anyhow::Error>(done)
                }
            });
            let done: u32 = futures::future::try_join_all(each).await?.into_iter().sum();
            Ok(f64::from(done) / start.elapsed().as_secs_f64())
        })
    })
    .await?
}
