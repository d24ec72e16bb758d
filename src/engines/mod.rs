//! Toolkit: reaching what stands at a URL that is somebody else's text: an OpenAI-compatible engine, or a receiver of webhooks.
//!
//! What holds here, whoever calls:
//! * a connection goes only to an address that passed [`rules`] in the very look-up that the connection uses, so a name that changes its
//!   address between check and use gains nothing;
//! * redirects are never followed and no proxy of the environment is used;
//! * bodies are read up to a bound, and every wait has a bound;
//! * dropping a request, before or after its headers came, closes the connection at once, which tells the engine to stop.

mod address;
mod answers;
mod client;
mod posting;
mod recent;
mod resolver;
pub mod rules;

pub use address::{AddressFault, EngineAddress};
pub use answers::{EngineDescription, EngineModel, ProbeAnswer};
pub use client::{BodyStream, EngineClient, EngineResponse, Target};
pub use posting::{PostClient, PostFault, PostRequest, Posted};
pub use resolver::{LookUp, Reach};

/// `owned_by` of the model that `rigmark simulate-engine` serves; modes other than the sandbox refuse such an engine.
pub const SIMULATED_OWNER: &str = "rigmark-simulated-engine";
