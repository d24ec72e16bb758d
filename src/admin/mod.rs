//! Operator actions, and the sandbox's clock. Owns no table: it acts through the domains, and every act is audited.

pub mod api;
pub mod pages;
pub mod service;
