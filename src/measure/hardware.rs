//! What NVIDIA's own tool says of the GPUs of the machine this client runs on: the only hardware identity of a plain document.

use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::process::Command;

const SECONDS_MAX: u64 = 10;
const QUERY: &str = "index,name,driver_version,pci.bus_id,pcie.link.gen.current,pcie.link.width.current,power.limit";

/// Members for `startup_diagnostics`: `nvidia_smi_query`, or `nvidia_smi_error`. Bus addresses are left out: they identify the machine and
/// say nothing about speed.
pub async fn nvidia_smi() -> Value {
    let arguments = [format!("--query-gpu={QUERY}"), "--format=csv,noheader,nounits".to_owned()];
    let run = Command::new("nvidia-smi").args(&arguments).stdin(Stdio::null()).kill_on_drop(true).output();
    match tokio::time::timeout(Duration::from_secs(SECONDS_MAX), run).await {
        Ok(Ok(output)) => json!({"nvidia_smi_query": {
            "cmd": ["nvidia-smi", arguments[0], arguments[1]],
            "returncode": output.status.code().unwrap_or(-1),
            "stdout": without_bus(&String::from_utf8_lossy(&output.stdout)),
            "stderr": String::from_utf8_lossy(&output.stderr),
        }}),
        Ok(Err(error)) => json!({"nvidia_smi_error": error.to_string()}),
        Err(_) => json!({"nvidia_smi_error": "no answer in time"}),
    }
}

fn without_bus(rows: &str) -> String {
    let rows = rows.lines().map(|row| {
        let fields: Vec<&str> = row.split(", ").enumerate().map(|(at, field)| if at == 3 { "" } else { field }).collect();
        fields.join(", ")
    });
    rows.collect::<Vec<_>>().join("\n")
}
