//! The outside world: what Rigmark reaches that is neither its database nor an engine.

pub mod mail;
