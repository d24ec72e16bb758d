//! The wires between a process and the world: PostgreSQL and Stripe through two proxies that cut both at one chosen moment. From then on
//! nothing of the process reaches anybody, as if it had been killed, whatever it still does.
//!
//! Commits are seen on PostgreSQL's wire: a `COMMIT`, or a statement outside a transaction that wrote rows, when the server says that it is done.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, BufWriter};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// When the process dies. Counted from 1, from [`Wires::arm`] on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// This commit is done, and the process is not told.
    Committed(usize),
    /// This request to Stripe is not sent.
    Sending(usize),
    /// It was sent and is done; the answer does not arrive.
    Sent(usize),
    /// It was sent and is on its way: it arrives at [`Wires::deliver_late`], in a world where the process has long been started again.
    Late(usize),
    /// The answer arrives; the transaction in which it is stored is not committed.
    Unstored(usize),
}

/// What happened while armed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    pub commits: usize,
    pub calls: usize,
}

impl Counts {
    /// Every moment at which a run of so many commits and calls can be cut.
    pub fn cuts(self) -> Vec<Cut> {
        let commits = (1..=self.commits).map(Cut::Committed);
        let calls = (1..=self.calls).flat_map(|at| [Cut::Sending(at), Cut::Sent(at), Cut::Late(at), Cut::Unstored(at)]);
        commits.chain(calls).collect()
    }
}

#[derive(Default)]
struct Seen {
    is_armed: bool,
    cut: Option<Cut>,
    commits: usize,
    calls: usize,
    /// The next commit is not let through.
    is_storing: bool,
    late: Option<Vec<u8>>,
}

struct Shared {
    seen: Mutex<Seen>,
    is_cut: watch::Sender<bool>,
}

/// What becomes of a request to Stripe.
enum Fate {
    Passes,
    /// It is done; its answer is lost.
    Unanswered,
    Dies,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn die(&self) {
        self.is_cut.send_replace(true);
    }

    /// Whether the process is told.
    fn committed(&self) -> bool {
        let mut seen = self.lock();
        if !seen.is_armed {
            return true;
        }
        seen.commits += 1;
        let passes = seen.cut != Some(Cut::Committed(seen.commits));
        if !passes {
            self.die();
        }
        passes
    }

    /// Whether a commit that is asked for is let through.
    fn may_commit(&self) -> bool {
        let passes = !self.lock().is_storing;
        if !passes {
            self.die();
        }
        passes
    }

    fn calls(&self, request: &[u8]) -> Fate {
        let mut seen = self.lock();
        if !seen.is_armed {
            return Fate::Passes;
        }
        seen.calls += 1;
        let call = seen.calls;
        let (fate, dies) = match seen.cut {
            // Nothing was stored between two requests.
            _ if seen.is_storing => (Fate::Dies, true),
            Some(Cut::Sending(at)) if at == call => (Fate::Dies, true),
            Some(Cut::Late(at)) if at == call => {
                seen.late = Some(request.to_owned());
                (Fate::Dies, true)
            }
            Some(Cut::Sent(at)) if at == call => (Fate::Unanswered, false),
            _ => (Fate::Passes, false),
        };
        drop(seen);
        if dies {
            self.die();
        }
        fate
    }

    fn answered(&self) {
        let mut seen = self.lock();
        seen.is_storing = seen.is_armed && seen.cut == Some(Cut::Unstored(seen.calls));
    }
}

/// The wires of one process. Cut when dropped.
pub struct Wires {
    /// Where the process finds its database.
    pub database_url: String,
    /// Where it finds Stripe, without a trailing slash.
    pub stripe_url: String,
    stripe: SocketAddr,
    shared: Arc<Shared>,
}

impl Wires {
    /// To the database and the Stripe at these addresses.
    pub async fn start(database_url: &str, stripe_url: &str) -> Self {
        let mut url = url::Url::parse(database_url).unwrap();
        let database: SocketAddr = format!("{}:{}", url.host_str().unwrap(), url.port().unwrap()).parse().unwrap();
        let stripe: SocketAddr = stripe_url.strip_prefix("http://").unwrap().parse().unwrap();
        let shared = Arc::new(Shared { seen: Mutex::default(), is_cut: watch::Sender::new(false) });
        let at = accept(&shared, move |shared, client| async move { query(&shared, client, database).await }).await;
        url.set_port(Some(at.port())).unwrap();
        let at = accept(&shared, move |shared, client| async move { relay(&shared, client, stripe).await }).await;
        Self { database_url: url.into(), stripe_url: format!("http://{at}"), stripe, shared }
    }

    /// Counts from here on, and cuts when it is time.
    pub fn arm(&self, cut: Option<Cut>) {
        *self.shared.lock() = Seen { is_armed: true, cut, ..Seen::default() };
    }

    /// What was counted.
    pub fn counts(&self) -> Counts {
        let seen = self.shared.lock();
        Counts { commits: seen.commits, calls: seen.calls }
    }

    /// Now.
    pub fn cut(&self) {
        self.shared.die();
    }

    /// When the moment has come.
    pub async fn until_cut(&self) {
        self.shared.is_cut.subscribe().wait_for(|is_cut| *is_cut).await.unwrap();
    }

    /// Lets a request of a [`Cut::Late`] arrive.
    pub async fn deliver_late(&self) {
        let Some(request) = self.shared.lock().late.take() else { return };
        let mut server = BufReader::new(TcpStream::connect(self.stripe).await.unwrap());
        server.get_mut().write_all(&request).await.unwrap();
        assert!(message(&mut server).await.unwrap().is_some());
    }
}

impl Drop for Wires {
    fn drop(&mut self) {
        self.cut();
    }
}

/// Takes connections until the cut; then the port is closed, and so is every connection.
async fn accept<F, W>(shared: &Arc<Shared>, wire: W) -> SocketAddr
where
    W: Fn(Arc<Shared>, TcpStream) -> F + Send + 'static,
    F: Future<Output = io::Result<()>> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let shared = Arc::clone(shared);
    tokio::spawn(async move {
        let mut is_cut = shared.is_cut.subscribe();
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                _ = is_cut.wait_for(|is_cut| *is_cut) => return,
            };
            let Ok((client, _)) = accepted else { return };
            client.set_nodelay(true).ok();
            let (work, mut is_cut) = (wire(Arc::clone(&shared), client), shared.is_cut.subscribe());
            tokio::spawn(async move {
                tokio::select! {
                    biased;
                    _ = is_cut.wait_for(|is_cut| *is_cut) => {}
                    _ = work => {}
                }
            });
        }
    });
    address
}

/// One connection to PostgreSQL.
async fn query(shared: &Shared, client: TcpStream, server: SocketAddr) -> io::Result<()> {
    let server = TcpStream::connect(server).await?;
    server.set_nodelay(true)?;
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    // The end of either is the end of both.
    tokio::select! {
        ended = asks(shared, from_client, to_server) => ended,
        ended = answers(shared, from_server, to_client) => ended,
    }
}

async fn asks(shared: &Shared, from: OwnedReadHalf, to: OwnedWriteHalf) -> io::Result<()> {
    let (mut from, mut to) = (BufReader::new(from), BufWriter::new(to));
    // The first message has no kind.
    let length = from.read_u32().await?;
    let mut body = vec![0; length as usize - 4];
    from.read_exact(&mut body).await?;
    to.write_u32(length).await?;
    to.write_all(&body).await?;
    loop {
        if from.buffer().is_empty() {
            to.flush().await?;
        }
        let (kind, length) = (from.read_u8().await?, from.read_u32().await?);
        body.resize(length as usize - 4, 0);
        from.read_exact(&mut body).await?;
        if kind == b'Q' && body.starts_with(b"COMMIT") && !shared.may_commit() {
            return Ok(());
        }
        to.write_u8(kind).await?;
        to.write_u32(length).await?;
        to.write_all(&body).await?;
    }
}

async fn answers(shared: &Shared, from: OwnedReadHalf, to: OwnedWriteHalf) -> io::Result<()> {
    let (mut from, mut to) = (BufReader::new(from), BufWriter::new(to));
    let mut body = Vec::new();
    let mut commits = false;
    loop {
        if from.buffer().is_empty() {
            to.flush().await?;
        }
        let (kind, length) = (from.read_u8().await?, from.read_u32().await?);
        body.resize(length as usize - 4, 0);
        from.read_exact(&mut body).await?;
        match kind {
            b'C' => commits = wrote(&body) || (commits && !body.starts_with(b"ROLLBACK")),
            // Outside a transaction again.
            b'Z' if body == b"I" && std::mem::take(&mut commits) && !shared.committed() => return Ok(()),
            _ => {}
        }
        to.write_u8(kind).await?;
        to.write_u32(length).await?;
        to.write_all(&body).await?;
    }
}

/// Whether the tag of a statement says that something may have been written.
fn wrote(tag: &[u8]) -> bool {
    let tag = String::from_utf8_lossy(tag);
    let mut words = tag.trim_end_matches('\0').split(' ');
    match words.next() {
        Some("COMMIT") => true,
        Some("INSERT" | "UPDATE" | "DELETE") => words.next_back() != Some("0"),
        _ => false,
    }
}

/// One connection to Stripe.
async fn relay(shared: &Shared, client: TcpStream, server: SocketAddr) -> io::Result<()> {
    let mut client = BufReader::new(client);
    let mut server = BufReader::new(TcpStream::connect(server).await?);
    while let Some(request) = message(&mut client).await? {
        let fate = shared.calls(&request);
        if matches!(fate, Fate::Dies) {
            break;
        }
        server.get_mut().write_all(&request).await?;
        let Some(answer) = message(&mut server).await? else { break };
        if matches!(fate, Fate::Unanswered) {
            shared.die();
            break;
        }
        shared.answered();
        client.get_mut().write_all(&answer).await?;
    }
    Ok(())
}

/// A whole HTTP message, head and body; `None` at the end of the connection. Bodies have a length: neither side sends chunks.
async fn message(from: &mut BufReader<TcpStream>) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    let mut body_length = 0;
    loop {
        let start = bytes.len();
        if from.read_until(b'\n', &mut bytes).await? == 0 {
            return Ok(None);
        }
        let line = String::from_utf8_lossy(&bytes[start..]).to_ascii_lowercase();
        assert!(!line.starts_with("transfer-encoding:"), "{line}");
        if let Some(length) = line.strip_prefix("content-length:") {
            body_length = length.trim().parse().map_err(io::Error::other)?;
        }
        if line == "\r\n" {
            break;
        }
    }
    let head = bytes.len();
    bytes.resize(head + body_length, 0);
    from.read_exact(&mut bytes[head..]).await?;
    Ok(Some(bytes))
}
