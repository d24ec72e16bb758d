//! All SQL of the domain, a file for each group of tables.

pub(super) mod accounts;
pub(super) mod addresses;
pub(super) mod callers;
pub(super) mod cookies;
pub(super) mod invitations;
pub(super) mod keys;
pub(super) mod mailed;
pub(super) mod members;
pub(super) mod sessions;
