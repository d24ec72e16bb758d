//! What goes wrong on demand: the next requests to a route are refused, late, or lose their connection.

use serde::Deserialize;
use serde_json::Value;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Answered with `status` and without effect.
    Status,
    /// Nothing happens and the connection closes.
    DropBefore,
    /// It happens, and the connection closes in place of the answer.
    DropAfter,
    /// It happens after `delay_ms`; the key counts as in use until then.
    DelayBefore,
    /// It happens at once, the answer comes after `delay_ms`; the key counts as in use until then.
    DelayAfter,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    pub kind: Kind,
    #[serde(default = "server_error")]
    pub status: u16,
    #[serde(default)]
    pub delay_ms: u64,
    #[serde(default = "once")]
    pub times: u32,
    /// Only requests of this method.
    #[serde(default)]
    pub method: Option<String>,
    /// Only paths that begin so.
    #[serde(default)]
    pub path: Option<String>,
    /// Keep a refusal under the idempotency key, as Stripe does when the fault struck after it had begun.
    #[serde(default)]
    pub kept: bool,
}

impl Fault {
    pub fn new(kind: Kind) -> Self {
        Self { kind, status: server_error(), delay_ms: 0, times: 1, method: None, path: None, kept: false }
    }
}

fn server_error() -> u16 {
    500
}

fn once() -> u32 {
    1
}

#[derive(Debug, Default)]
pub struct Faults(Vec<Fault>);

impl Faults {
    pub fn add(&mut self, fault: Fault) {
        self.0.push(fault);
    }

    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// The first fault that fits, used once.
    pub fn take(&mut self, method: &str, path: &str) -> Option<Fault> {
        let fits = |fault: &Fault| {
            fault.method.as_deref().is_none_or(|wanted| wanted == method) && fault.path.as_deref().is_none_or(|head| path.starts_with(head))
        };
        let at = self.0.iter().position(fits)?;
        let fault = self.0[at].clone();
        self.0[at].times = fault.times.saturating_sub(1);
        self.0.retain(|fault| fault.times > 0);
        Some(fault)
    }
}

/// A fault of `/_double/faults`.
pub fn read(body: &Value) -> Result<Fault, String> {
    Fault::deserialize(body).map_err(|error| error.to_string())
}
