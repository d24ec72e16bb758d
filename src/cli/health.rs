//! `rigmark health`.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    process::ExitCode,
    time::Duration,
};

use crate::base::{Code, Error, Result};

const TIMEOUT: Duration = Duration::from_secs(3);

#[derive(clap::Args, Debug)]
pub(super) struct Args {
    /// The address that the server was told to bind to.
    #[arg(long, env = "RIGMARK_BIND", default_value = "127.0.0.1:8080")]
    bind: SocketAddr,
}

pub(super) async fn run(args: Args) -> Result<ExitCode> {
    let url = format!("http://{}/healthz", reachable(args.bind));
    let failed = |what: String| Error::new(Code::Unavailable, format!("{url} {what}"));
    let client = reqwest::Client::builder().no_proxy().timeout(TIMEOUT).build().map_err(Error::internal)?;
    let answer = client.get(&url).send().await.map_err(|error| failed(format!("does not answer: {error}")))?;
    if !answer.status().is_success() {
        return Err(failed(format!("answers {}", answer.status())));
    }
    println!("{url} answers");
    Ok(ExitCode::SUCCESS)
}

/// Where a server bound to every address is reached from the same computer.
fn reachable(bind: SocketAddr) -> SocketAddr {
    let ip = match bind.ip() {
        IpAddr::V4(v4) if v4.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(v6) if v6.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, bind.port())
}
