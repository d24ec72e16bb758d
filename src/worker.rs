//! Every sweep and job handler. The order of the sweeps is the order in which moving the clock runs them: signs of life come first, so that
//! a machine that is there is never taken for silent.

use std::sync::Arc;

use crate::{identity, jobs::Registry, web::idempotency};

pub fn registry() -> Registry {
    Registry { sweeps: vec![Arc::new(idempotency::ExpireKeys), Arc::new(identity::Cleanup)], handlers: vec![Arc::new(identity::Letters)] }
}
