//! Accounts, members, sessions, API keys and upload tokens, entitlements (Pro as a fact, whoever sells it) and the audit; and the extractors that authorise.
//!
//! Invariants:
//! - one namespace of handles, no two of which look alike; a closed account's row stays, without its name;
//! - a session ends once: with it end its refresh tokens and its access tokens;
//! - of tokens, keys, cookies and links only hashes are stored;
//! - a cookie is good for pages alone and a token or key for the API alone;
//! - a key's rights are at most its maker's, now: the maker's membership and role are read at every use;
//! - an upload token opens what takes an [`Uploader`] and nothing else, and nothing else opens that;
//! - an organization has at least one owner;
//! - whether an e-mail address is known shows in no answer of login, reset or (live mode) registration, nor in their work.
//!
//! Lock order: rows of organizations (by id), then the row of a person, then memberships, invitations, keys; users, then a session, then its
//! refresh tokens.

pub mod api;
mod audit;
mod caller;
mod email;
pub mod extract;
mod handle;
mod jobs;
mod letters;
mod model;
mod names;
pub mod pages;
mod password;
mod queries;
pub mod scope;
pub mod service;
mod token;

pub use audit::{Act, By, audit};
pub use caller::{Actor, Caller, authenticate, authenticate_uploader, caller_for, caller_refresh};
pub use email::Email;
pub use extract::{Auth, MaybeAuth, Operator, Uploader};
pub use handle::{Handle, RESERVED as RESERVED_HANDLES};
pub use jobs::{Cleanup, Letters};
pub use model::{Account, AccountKind, AccountSummary, NewUploadToken, UploadTokenView};
pub use pages::{OperatorReader, Posted, SignedIn};
pub use token::ACCESS_SECONDS;
