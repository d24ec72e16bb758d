//! Going on with a run that was broken off: what its document holds need not be measured again, if it was measured of the same engine in the
//! same way. A document says all of that itself.

use serde_json::{Map, Value};

use crate::base::{Code, Error, Result};

/// Members of `metadata` that must be equal.
const SAME: [&str; 9] =
    ["version", "client", "engine", "engine_version", "model", "server", "duration_per_test", "max_tokens", "max_total_tokens"];

/// The document of an earlier run.
#[derive(Debug, Clone, PartialEq)]
pub struct Earlier {
    document: Value,
}

impl Earlier {
    /// Refuses what no run of this client wrote.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let document: Value = serde_json::from_slice(bytes)
            .map_err(|e| Error::new(Code::InvalidInput, format!("The earlier file is no document: {e}.")).with_source(e))?;
        let client = document["metadata"]["client"].as_str().unwrap_or_default();
        if !client.starts_with("rigmark-measure ") || !document["results"].is_array() {
            return Err(Error::new(Code::InvalidInput, "The earlier file was not written by rigmark measure."));
        }
        Ok(Self { document })
    }

    /// An error that names the first thing that is not as it was. `hardware` is what stands in `startup_diagnostics` beside the arguments.
    pub fn check(&self, metadata: &Value, hardware: &Value) -> Result<()> {
        let then = &self.document["metadata"];
        let mut differences: Vec<String> = Vec::new();
        for name in SAME {
            if then[name] != metadata[name] {
                differences.push(format!("{name} was {}, now {}", then[name], metadata[name]));
            }
        }
        let gpus = "nvidia_smi_query";
        if self.document["startup_diagnostics"][gpus]["stdout"] != hardware[gpus]["stdout"] {
            differences.push("the GPUs, their driver or their power limit are not the same".to_owned());
        }
        match differences.is_empty() {
            true => Ok(()),
            false => {
                let detail = format!("The earlier run cannot be gone on with: {}.", differences.join("; "));
                Err(Error::new(Code::InvalidInput, detail))
            }
        }
    }

    /// Decode cells that have a speed; failed ones are measured again.
    pub fn cells(&self) -> Vec<Map<String, Value>> {
        let cells = self.document["results"].as_array().into_iter().flatten();
        let measured = cells.filter(|cell| cell["aggregate_tps"].as_f64().is_some_and(|speed| speed > 0.0));
        measured.filter_map(Value::as_object).cloned().collect()
    }

    /// Rows by context.
    pub fn prefill(&self) -> Vec<(u64, Value)> {
        let rows = self.document["prefill"].as_object().into_iter().flatten();
        rows.filter_map(|(context, row)| Some((context.parse().ok()?, row.clone()))).collect()
    }

    pub fn log_lines(&self) -> Vec<String> {
        let lines = self.document["event_log"].as_array().into_iter().flatten();
        lines.filter_map(|line| line.as_str().map(str::to_owned)).collect()
    }

    /// With another length of prompts the rows would not lie on one line.
    pub fn chars_per_token(&self) -> Option<f64> {
        self.document["metadata"]["chars_per_token"].as_f64().filter(|ratio| (1.0..=12.0).contains(ratio))
    }
}
