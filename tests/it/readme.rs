//! README.md: the commands of its main job, typed in order as they stand, do what it says.
//!
//! Blocks marked `sh` are commands; the block after one, if it is not commands itself, is their answer. Ids, numbers and times of a documented
//! answer stand for others of their kind; everything else must be the same.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;
use std::sync::LazyLock;
use std::time::Duration;

use regex::Regex;
use serde_json::Value;

use crate::support::{TempDir, TestApp};

const README: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/README.md");
const SERVER: &str = "http://127.0.0.1:8080";
const ENGINE: &str = "127.0.0.1:9000";
const PROGRAM: &str = "target/release/rigmark";
const MARK: &str = "---- step ----";

struct Step {
    commands: String,
    /// Runs in a terminal of its own until the end.
    is_engine: bool,
    answer: String,
}

fn steps(readme: &str) -> Vec<Step> {
    let fence = Regex::new(r"(?ms)^```([^\n]+)\n(.*?)^```$").unwrap();
    let mut steps: Vec<Step> = Vec::new();
    for block in fence.captures_iter(readme) {
        let (kind, text) = (&block[1], block[2].to_owned());
        match (kind.split_once(' ').unwrap_or((kind, "")), steps.last_mut()) {
            (("sh", mark), _) => steps.push(Step { commands: text, is_engine: mark == "terminal=3", answer: String::new() }),
            (_, Some(step)) => step.answer.push_str(&text),
            (_, None) => panic!("an answer before any command: {text}"),
        }
    }
    steps
}

/// One script of all steps, in which only addresses and the program's path are others.
fn script(steps: &[Step], server: &str, engine: &str) -> String {
    let replaced = |text: &str| text.replace(SERVER, server).replace(ENGINE, engine).replace(PROGRAM, env!("CARGO_BIN_EXE_rigmark"));
    let mut script = String::new();
    for step in steps {
        let commands = replaced(&step.commands);
        script += &format!("echo '{MARK}'\n");
        if step.is_engine {
            let commands = commands.trim();
            script += &format!("{commands} > engine.out &\nengine=$!\ntrap 'kill $engine' EXIT\n");
            script += "for try in $(seq 600); do grep -q serves engine.out && break; sleep 0.1; done\ncat engine.out\n";
        } else {
            script += &commands;
        }
    }
    script
}

/// Whoever types the commands may have a GPU, which is not that of the machine that the simulated engine stands for.
fn some_gpu(folder: &Path) {
    let program = folder.join("nvidia-smi");
    std::fs::write(&program, "#!/bin/sh\necho '0, NVIDIA GeForce RTX 3060, 595.99, 0:1:0.0, 4, 16, 170.00'\n").unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// What each step answered; none when the measured run waits for review, as what is measured on a busy computer may.
async fn run(script: &str, folder: &Path) -> Option<Vec<String>> {
    some_gpu(folder);
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
    let mut command = tokio::process::Command::new("bash");
    command.arg("-c").arg(script).current_dir(folder).env("PATH", path).env("NO_PROXY", "127.0.0.1");
    command.stdin(Stdio::null()).kill_on_drop(true);
    let output = tokio::time::timeout(Duration::from_secs(400), command.output()).await.expect("the commands end").unwrap();
    let (out, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    // Shown when an assertion fails.
    println!("{errors}");
    if out.contains("Verdict: needs_review") {
        println!("{out}");
        return None;
    }
    assert!(output.status.success(), "{out}\n{errors}");
    Some(out.split(MARK).skip(1).map(|part| part.trim().to_owned()).collect())
}

/// The JSON values that the text begins with, and the rest.
fn parts(text: &str) -> (Vec<Value>, &str) {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    let mut found = Vec::new();
    loop {
        let end = values.byte_offset();
        match values.next() {
            Some(Ok(value)) => found.push(value),
            Some(Err(_)) | None => return (found, text.get(end..).unwrap_or_default().trim()),
        }
    }
}

/// Ids, hashes, numbers and the made-up words of an engine, each replaced by a sign of its kind.
fn masked(text: &str) -> String {
    static MASKS: LazyLock<[(Regex, &str); 5]> = LazyLock::new(|| {
        [
            (Regex::new(r"\b([a-z]{3})_[0-9a-z]{26}\b").unwrap(), "${1}_ID"),
            (Regex::new(r"\b[0-9a-f]{64}\b").unwrap(), "SHA256"),
            (Regex::new(r"chatcmpl-[0-9a-f]+").unwrap(), "chatcmpl-ID"),
            (Regex::new(r#""content":"[^"]+""#).unwrap(), "\"content\":\"WORD\""),
            (Regex::new(r"[0-9]+(?:[.,][0-9]+)*").unwrap(), "#"),
        ]
    });
    MASKS.iter().fold(text.to_owned(), |text, (mask, sign)| mask.replace_all(&text, *sign).into_owned())
}

/// Whether `found` is what `documented` stands for; otherwise where they part.
fn difference(documented: &Value, found: &Value, at: &str) -> Option<String> {
    let other = || Some(format!("{at}: README says {documented}, the answer was {found}"));
    match (documented, found) {
        (Value::Object(a), Value::Object(b)) => {
            if a.keys().ne(b.keys()) {
                return other();
            }
            a.iter().find_map(|(key, value)| difference(value, &b[key], &format!("{at}/{key}")))
        }
        (Value::Array(a), Value::Array(b)) => match (a.first(), b.first()) {
            (None, None) => None,
            (Some(documented), Some(_)) => b.iter().find_map(|found| difference(documented, found, &format!("{at}/-"))),
            _ => other(),
        },
        (Value::String(a), Value::String(b)) if masked(a) == masked(b) => None,
        (Value::Number(_), Value::Number(_)) => None,
        (Value::Bool(a), Value::Bool(b)) if a == b => None,
        (Value::Null, Value::Null) => None,
        _ => other(),
    }
}

fn compare(step: &Step, found: &str) {
    let (documented_values, documented_rest) = parts(&step.answer);
    let (found_values, found_rest) = parts(found);
    assert_eq!(documented_values.len(), found_values.len(), "{}\nanswered\n{found}", step.commands);
    for (documented, found) in documented_values.iter().zip(&found_values) {
        if let Some(difference) = difference(documented, found, "") {
            panic!("{}\n{difference}", step.commands);
        }
    }
    let found_lines = masked(found_rest);
    for line in documented_rest.lines().filter(|line| !line.trim().is_empty()) {
        assert!(found_lines.contains(masked(line).trim()), "{}\nREADME says\n{line}\nthe answer was\n{found}", step.commands);
    }
}

/// Millionths of a dollar.
fn micros(amount: &Value) -> i64 {
    let text = amount.as_str().unwrap();
    let (sign, text) = text.strip_prefix('-').map_or((1, text), |text| (-1, text));
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    sign * (whole.parse::<i64>().unwrap() * 1_000_000 + format!("{fraction:0<6}").parse::<i64>().unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_main_job_goes_as_the_readme_says() {
    let steps = steps(&std::fs::read_to_string(README).unwrap());
    assert!(steps.len() >= 10 && steps.iter().filter(|step| step.is_engine).count() == 1);
    assert!(steps.iter().filter(|step| step.answer.is_empty()).count() <= 1, "commands without their answers");
    let mut answers = None;
    for _ in 0..3 {
        let app = TestApp::with_workers(|_| {}).await;
        let folder = TempDir::new();
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let script = script(&steps, app.http.base_url(), &format!("127.0.0.1:{port}"));
        answers = run(&script, folder.path()).await;
        if answers.is_some() {
            break;
        }
    }
    let found = answers.expect("three measurements wait for review");
    assert_eq!(found.len(), steps.len());
    for (step, found) in steps.iter().zip(&found) {
        compare(step, found);
    }
    statements_add_up(&steps, &found);
}

fn statements_add_up(steps: &[Step], found: &[String]) {
    let at = steps.iter().position(|step| step.commands.contains("/statements")).unwrap();
    let (values, _) = parts(&found[at]);
    let statements: Vec<&Value> = values.iter().filter(|value| value["account"].is_string()).collect();
    let [renter, host] = statements.as_slice() else { panic!("{values:?}") };
    for statement in [renter, host] {
        assert_eq!(
            micros(&statement["opening"]) + micros(&statement["credits"]) - micros(&statement["charges"]),
            micros(&statement["closing"]),
            "{statement}"
        );
    }
    let (paid, earned) = (micros(&renter["charges"]), micros(&host["credits"]));
    // An hour at 0.36 and the seconds that the commands took.
    assert!((360_000..400_000).contains(&paid), "{renter}");
    let fee = paid - earned;
    assert!((fee * 10 - paid).abs() <= 10, "{paid} paid, {earned} earned");
}

#[test]
fn a_changed_answer_is_noticed() {
    let step = |answer: &str| Step { commands: String::new(), is_engine: false, answer: answer.to_owned() };
    let answer = "{\"id\":\"mch_01m8ntcq7bet9ver8tbpabc1nf\",\"price\":\"0.36\",\"list\":[1]}\nVerdict: verified 5";
    compare(&step(answer), "{\"id\":\"mch_01m8ntcq7bet9ver8tbpabc2zz\",\"price\":\"2.1\",\"list\":[7,8]}\nVerdict: verified 17");
    for other in [
        "{\"id\":\"usr_01m8ntcq7bet9ver8tbpabc1nf\",\"price\":\"0.36\",\"list\":[1]}\nVerdict: verified 5",
        "{\"id\":\"mch_01m8ntcq7bet9ver8tbpabc1nf\",\"price\":0.36,\"list\":[1]}\nVerdict: verified 5",
        "{\"id\":\"mch_01m8ntcq7bet9ver8tbpabc1nf\",\"price\":\"0.36\",\"list\":[]}\nVerdict: verified 5",
        "{\"id\":\"mch_01m8ntcq7bet9ver8tbpabc1nf\",\"price\":\"0.36\",\"list\":[1],\"more\":1}\nVerdict: verified 5",
        "{\"id\":\"mch_01m8ntcq7bet9ver8tbpabc1nf\",\"price\":\"0.36\",\"list\":[1]}\nVerdict: rejected 5",
        "Verdict: verified 5",
    ] {
        let compared = std::panic::catch_unwind(|| compare(&step(answer), other));
        assert!(compared.is_err(), "{other}");
    }
}
