//! Resident memory of the program itself, PostgreSQL not counted: after its start, and after a thousand mixed requests.

use std::{process::Stdio, time::Duration};

use anyhow::{Context as _, Result, bail};
use tokio::process::{Child, Command};

use crate::{
    load::{self, Connection},
    program,
    table::{Goal, Row},
    world::{CLIENTS, FILTERS, WORKLOAD, World},
};

const LIMIT_MIB: f64 = 64.0;
const REQUESTS: usize = 1_000;
/// What has been used is given back, or not, by then.
const REST: Duration = Duration::from_secs(3);

pub async fn measure(world: &World) -> Result<Vec<Row>> {
    let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let data_dir = world.dir.path().join("program");
    let mut child = Command::new(program())
        .args(["serve", "--bind", &format!("127.0.0.1:{port}"), "--database-url", &world.postgres.url("big")])
        .arg("--data-dir")
        .arg(&data_dir)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()?;
    let server = format!("127.0.0.1:{port}").parse()?;
    let mut connection = None;
    for _ in 0..100 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        if let Ok(opened) = Connection::open(server).await {
            connection = Some(opened);
            break;
        }
    }
    drop(connection.context("the program did not start")?);
    tokio::time::sleep(REST).await;
    let at_start = resident_mib(&child)?;
    let each = (0..CLIENTS).map(|client| async move {
        let mut connection = Connection::open(server).await?;
        for number in (client..REQUESTS).step_by(CLIENTS) {
            let path = match number % 8 {
                0 | 1 => FILTERS,
                2 => WORKLOAD,
                3 => world.run_path.as_str(),
                4 => "/en/marketplace",
                5 => "/api/v1/hardware",
                6 => "/api/v1/models",
                _ => "/api/v1/matrix-runs",
            };
            connection.call(&load::get(path)).await?;
        }
        Ok::<_, anyhow::Error>(())
    });
    futures::future::try_join_all(each).await?;
    tokio::time::sleep(REST).await;
    let after = resident_mib(&child)?;
    stop(&mut child).await?;
    Ok(vec![
        Row::of_sizes("memory at rest, after the start", &[(at_start, LIMIT_MIB)], Goal::AtMost(1.0)),
        Row::of_sizes("memory at rest, after 1,000 requests", &[(after, LIMIT_MIB)], Goal::AtMost(1.0)),
    ])
}

fn resident_mib(child: &Child) -> Result<f64> {
    let pid = child.id().context("the program has ended")?;
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
    let kib: f64 = line.trim().trim_end_matches("kB").trim().parse()?;
    Ok(kib / 1_024.0)
}

async fn stop(child: &mut Child) -> Result<()> {
    let pid = libc::pid_t::try_from(child.id().context("the program has ended")?)?;
    // SAFETY: a system call on values; the child has not been waited for, so the id is its own.
    unsafe { libc::kill(pid, libc::SIGTERM) };
    match tokio::time::timeout(Duration::from_secs(20), child.wait()).await {
        Ok(status) if status.as_ref().is_ok_and(std::process::ExitStatus::success) => Ok(()),
        other => bail!("the program did not stop in order: {other:?}"),
    }
}
