//! The embedded PostgreSQL survives what happens to it and to the process that runs it.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use diesel::sql_types::Integer;
use diesel::{QueryableByName, sql_query};
use diesel_async::{AsyncConnection, AsyncPgConnection, RunQueryDsl, SimpleAsyncConnection};
use rigmark::base::{Code, clock};
use rigmark::db::embedded::{DATABASE, Embedded, EmbeddedConfig};

use tokio::sync::OnceCell;

use crate::support::{TempDir, at_exit, wait_for};

/// Given to [`owner_process`] by the tests that need another process to run the server.
const DATA_DIR: &str = "RIGMARK_TEST_EMBEDDED_DATA_DIR";

#[derive(QueryableByName)]
struct Count {
    #[diesel(sql_type = Integer)]
    count: i32,
}

/// A data directory whose cluster is made already: a copy, since `initdb` takes most of a first start.
async fn made() -> TempDir {
    static SEED: OnceCell<TempDir> = OnceCell::const_new();
    let seed = SEED.get_or_init(async || {
        let dir = TempDir::new_in_memory();
        start(dir.path()).await.stop().await.unwrap();
        at_exit(|| SEED.get().into_iter().for_each(TempDir::remove));
        dir
    });
    let dir = TempDir::new_in_memory();
    let copied = Command::new("cp").arg("-a").arg(seed.await.path().join(".")).arg(dir.path()).status().unwrap();
    assert!(copied.success());
    dir
}

async fn start(data_dir: &Path) -> Embedded {
    Embedded::start(config(data_dir)).await.unwrap()
}

fn config(data_dir: &Path) -> EmbeddedConfig {
    EmbeddedConfig { data_dir: data_dir.to_owned(), bin_dir: None, fsync: false }
}

async fn execute(url: &str, sql: &str) {
    let mut connection = AsyncPgConnection::establish(url).await.unwrap();
    connection.batch_execute(sql).await.unwrap();
}

async fn rows(url: &str) -> Option<i32> {
    let mut connection = AsyncPgConnection::establish(url).await.ok()?;
    let count: Count = sql_query("SELECT count(*)::int AS count FROM things").get_result(&mut connection).await.ok()?;
    Some(count.count)
}

const THINGS: &str = "CREATE TABLE things (n int); INSERT INTO things SELECT generate_series(1, 100)";

#[tokio::test]
async fn a_second_start_is_quick_and_finds_the_data() {
    let dir = TempDir::new_in_memory();
    let first = start(dir.path()).await;
    execute(&first.url(DATABASE), THINGS).await;
    first.stop().await.unwrap();

    let before = clock::monotonic();
    let second = start(dir.path()).await;
    let took = before.elapsed();
    assert_eq!(rows(&second.url(DATABASE)).await, Some(100));
    // 0.1 s on an idle machine; the bound tells it from a second initdb and from an orderly-stop timeout.
    assert!(took < Duration::from_secs(3), "{took:?}");
}

#[tokio::test]
async fn one_process_at_a_time_runs_a_data_directory() {
    let dir = made().await;
    assert_eq!(Embedded::running_url(dir.path()).unwrap(), None);
    let first = start(dir.path()).await;
    let Err(error) = Embedded::start(config(dir.path())).await else { panic!("two servers share a data directory") };
    assert_eq!(error.code(), Code::Unavailable);
    assert!(error.detail().contains(&format!("process {}", std::process::id())), "{error:?}");
    assert_eq!(Embedded::running_url(dir.path()).unwrap(), Some(first.url(DATABASE)));

    first.stop().await.unwrap();
    assert_eq!(Embedded::running_url(dir.path()).unwrap(), None);
}

#[tokio::test]
async fn only_the_password_opens_it_and_only_its_user_can_read_the_password() {
    let dir = made().await;
    let server = start(dir.path()).await;
    let url = server.url(DATABASE);
    let (head, tail) = url.split_once('@').unwrap();
    let wrong = format!("{}x@{tail}", head);
    assert!(AsyncPgConnection::establish(&wrong).await.is_err());
    for name in ["password", "url"] {
        assert_eq!(std::fs::metadata(dir.path().join(name)).unwrap().permissions().mode() & 0o777, 0o600, "{name}");
    }
    assert_eq!(std::fs::metadata(dir.path().join("cluster")).unwrap().permissions().mode() & 0o777, 0o700);
}

#[tokio::test]
async fn a_killed_server_comes_back_on_the_same_port() {
    let dir = made().await;
    let server = start(dir.path()).await;
    let url = server.url(DATABASE);
    execute(&url, THINGS).await;
    for _ in 0..2 {
        kill(server.server_pid().unwrap());
        wait_for("the restarted server", Duration::from_secs(30), async || rows(&url).await == Some(100)).await;
    }
    server.stop().await.unwrap();
}

#[tokio::test]
async fn the_death_of_its_owner_ends_the_server_and_leaves_a_directory_that_starts() {
    let dir = made().await;
    for round in 0..3 {
        let mut owner = spawn_owner(dir.path());
        let mut url = None;
        wait_for("the owner's server", Duration::from_secs(60), async || {
            url = Embedded::running_url(dir.path()).ok().flatten();
            url.is_some()
        })
        .await;
        if round == 0 {
            execute(&url.unwrap(), THINGS).await;
        }
        kill(owner.id());
        owner.wait().unwrap();
        // At once: what the owner left may still be stopping.
        let server = start(dir.path()).await;
        assert_eq!(rows(&server.url(DATABASE)).await, Some(100), "round {round}");
        server.stop().await.unwrap();
    }
    let mut owner = spawn_owner(dir.path());
    wait_for("the owner's server", Duration::from_secs(60), async || dir.path().join("url").exists()).await;
    kill(owner.id());
    owner.wait().unwrap();
    wait_for("the end of the orphan", Duration::from_secs(30), async || !dir.path().join("cluster/postmaster.pid").exists()).await;
}

#[tokio::test]
async fn a_kill_during_the_first_start_leaves_nothing_half_made() {
    for milliseconds in [50, 200, 400] {
        let dir = TempDir::new_in_memory();
        let mut owner = spawn_owner(dir.path());
        // Not synchronisation: the kill is meant to fall anywhere in the start.
        tokio::time::sleep(Duration::from_millis(milliseconds)).await;
        kill(owner.id());
        owner.wait().unwrap();
        start(dir.path()).await.stop().await.unwrap();
    }
}

#[tokio::test]
async fn a_pid_file_that_names_a_stranger_is_not_believed() {
    let dir = made().await;
    let pid_file = dir.path().join("cluster/postmaster.pid");
    std::fs::write(&pid_file, format!("{}\n", std::process::id())).unwrap();
    start(dir.path()).await.stop().await.unwrap();
}

#[tokio::test]
async fn missing_programs_and_foreign_versions_are_told() {
    let dir = TempDir::new_in_memory();
    let empty = dir.path().join("empty");
    std::fs::create_dir(&empty).unwrap();
    let named = EmbeddedConfig { bin_dir: Some(empty.clone()), ..config(&dir.path().join("data")) };
    let Err(error) = Embedded::start(named).await else { panic!("started from an empty folder") };
    assert!(error.detail().contains("PG_BIN_DIR") && error.detail().contains(empty.to_str().unwrap()), "{error:?}");

    let made = made().await;
    std::fs::write(made.path().join("cluster/PG_VERSION"), "9\n").unwrap();
    let Err(error) = Embedded::start(config(made.path())).await else { panic!("started the cluster of another version") };
    assert!(error.detail().contains("PostgreSQL 9"), "{error:?}");
}

/// As root the server runs as another user, who cannot enter a directory closed to others; as an ordinary user it runs as that user.
#[tokio::test]
async fn a_closed_directory_above_is_no_obstacle() {
    let dir = TempDir::new_in_memory();
    let closed = dir.path().join("closed");
    std::fs::create_dir(&closed).unwrap();
    std::fs::set_permissions(&closed, PermissionsExt::from_mode(0o700)).unwrap();
    let data_dir = closed.join("data");
    let server = start(&data_dir).await;
    execute(&server.url(DATABASE), THINGS).await;
    server.stop().await.unwrap();

    let server = start(&data_dir).await;
    assert_eq!(rows(&server.url(DATABASE)).await, Some(100));
    server.stop().await.unwrap();
    let me = std::fs::metadata(dir.path()).unwrap().uid();
    let home = std::fs::read_to_string(data_dir.join("location")).map_or(data_dir.clone(), PathBuf::from);
    let owner = std::fs::metadata(home.join("cluster")).unwrap().uid();
    assert_eq!(me == 0, home != data_dir, "{home:?}");
    assert_eq!(me == 0, owner != me);
    if home != data_dir {
        std::fs::remove_dir_all(&home).unwrap();
    }
}

fn spawn_owner(data_dir: &Path) -> std::process::Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "db::embedded::owner_process", "--ignored", "--nocapture"]).env(DATA_DIR, data_dir);
    command.stdout(std::process::Stdio::null()).process_group(0).spawn().unwrap()
}

/// Not a test: the process that `spawn_owner` starts and a test kills.
#[tokio::test]
#[ignore = "run by other tests in a process of its own"]
async fn owner_process() {
    let data_dir = std::env::var_os(DATA_DIR).expect("set by spawn_owner");
    let _server = start(Path::new(&data_dir)).await;
    tokio::time::sleep(Duration::from_secs(120)).await;
}

fn kill(pid: u32) {
    // SAFETY: a system call on values; the process is a child of ours that has not been reaped.
    let code = unsafe { libc::kill(pid.cast_signed(), libc::SIGKILL) };
    assert_eq!(code, 0);
}
