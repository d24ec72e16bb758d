//! Rows as the queries give them, and the views that go out as JSON.

use chrono::{DateTime, Utc};
use diesel::{Queryable, Selectable};
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use super::scope::{Role, Scope, ScopeSet};
use crate::{
    base::{
        id::{AccountId, ApiKeyId, InvitationId, MachineId, SessionId, UploadTokenId, account_text},
        secret::Secret,
        shape::{AccountIdText, HandleText},
    },
    db::schema,
};

/// A person or a team.
#[derive(Debug, Clone, Queryable, Selectable)]
#[diesel(table_name = schema::accounts)]
pub struct Account {
    pub id: AccountId,
    pub kind: String,
    pub handle: String,
    pub display_name: String,
    pub is_operator: bool,
    pub created_at: DateTime<Utc>,
    pub closed_at: Option<DateTime<Utc>>,
}

impl Account {
    pub fn is_organization(&self) -> bool {
        self.kind == "organization"
    }
    pub fn kind(&self) -> AccountKind {
        if self.is_organization() { AccountKind::Organization } else { AccountKind::User }
    }
    /// The id as it stands in JSON: `usr_…` or `org_…`.
    pub fn id_text(&self) -> String {
        account_text(self.id, self.is_organization())
    }
    pub fn summary(&self) -> AccountSummary {
        AccountSummary { id: self.id_text(), kind: self.kind(), handle: self.handle.clone(), display_name: self.display_name.clone() }
    }
}

/// What only a person has.
#[derive(Debug, Clone, Queryable, Selectable)]
#[diesel(table_name = schema::users)]
pub(super) struct User {
    pub email: Option<String>,
    pub email_confirmed_at: Option<DateTime<Utc>>,
}

#[derive(Clone, Queryable, Selectable)]
#[diesel(table_name = schema::users)]
pub(super) struct Credentials {
    pub account_id: AccountId,
    pub password_hash: String,
}

#[derive(Clone, Queryable, Selectable)]
#[diesel(table_name = schema::registrations)]
pub(super) struct Registration {
    pub id: Uuid,
    pub email: String,
    pub handle: String,
    pub display_name: String,
    pub password_hash: String,
    pub expires_at: DateTime<Utc>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LinkPurpose {
    ConfirmEmail,
    ResetPassword,
}

impl LinkPurpose {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ConfirmEmail => "confirm_email",
            Self::ResetPassword => "reset_password",
        }
    }
}

/// Why a session has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EndReason {
    Logout,
    PasswordChanged,
    PasswordReset,
    RefreshTokenReused,
    AccountClosed,
    Expired,
}

impl EndReason {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Logout => "logout",
            Self::PasswordChanged => "password_changed",
            Self::PasswordReset => "password_reset",
            Self::RefreshTokenReused => "refresh_token_reused",
            Self::AccountClosed => "account_closed",
            Self::Expired => "expired",
        }
    }
}

#[derive(Queryable)]
pub(super) struct Session {
    pub id: SessionId,
    pub user_id: AccountId,
    pub end_reason: Option<String>,
}

#[derive(Queryable)]
pub(super) struct RefreshToken {
    pub session_id: SessionId,
    pub expires_at: DateTime<Utc>,
    pub rotated_at: Option<DateTime<Utc>>,
}

#[derive(Queryable)]
pub(super) struct SessionCaller {
    pub user_id: AccountId,
    pub handle: String,
    pub is_operator: bool,
    pub last_used_at: DateTime<Utc>,
    pub pro: Option<ProFact>,
}

/// Pro as an account's row has it (business time): given until some instant, sold until another or for as long as it renews itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Queryable, Selectable)]
#[diesel(table_name = schema::entitlements, check_for_backend(diesel::pg::Pg))]
pub struct ProFact {
    pub granted_until: Option<DateTime<Utc>>,
    pub sold_until: Option<DateTime<Utc>>,
    /// What was sold goes on beyond `sold_until`, until the seller says otherwise.
    pub renews: bool,
    /// How many members an organization may have with what was sold.
    pub seats: Option<i32>,
}

impl ProFact {
    pub fn is_on(&self, now: DateTime<Utc>) -> bool {
        self.renews || self.until().is_some_and(|until| now < until)
    }

    /// As far as is known now.
    pub fn until(&self) -> Option<DateTime<Utc>> {
        self.granted_until.max(self.sold_until)
    }

    /// The most members an organization may have at `now`; none where nothing limits them.
    pub fn seats_at(&self, now: DateTime<Utc>) -> Option<i32> {
        let is_granted = self.granted_until.is_some_and(|until| now < until);
        self.seats.filter(|_| !is_granted && self.is_on(now))
    }
}

#[derive(Queryable)]
pub(super) struct KeyCaller {
    pub key_id: ApiKeyId,
    pub account_id: AccountId,
    pub account_handle: String,
    pub created_by: AccountId,
    /// The maker's role; none for a person's own key.
    pub role: Option<String>,
    pub scopes: Vec<String>,
    pub last_used_at: Option<DateTime<Utc>>,
    /// The machine that an upload token is bound to.
    pub machine_id: Option<MachineId>,
    pub pro: Option<ProFact>,
}

#[derive(Debug, Clone, Queryable, Selectable)]
#[diesel(table_name = schema::api_keys)]
pub(super) struct ApiKey {
    pub id: ApiKeyId,
    pub created_by: AccountId,
    pub minted_by: Option<ApiKeyId>,
    pub name: String,
    pub prefix: String,
    pub scopes: Vec<String>,
    pub created_at: DateTime<Utc>,
    pub expires_at: Option<DateTime<Utc>>,
    pub last_used_at: Option<DateTime<Utc>>,
    pub machine_id: Option<MachineId>,
}

/// Scopes as stored; the table's CHECK lets no others in.
pub(super) fn scope_set(stored: &[String]) -> ScopeSet {
    stored.iter().filter_map(|text| Scope::parse(text)).collect()
}

#[derive(Debug, Clone, Queryable, Selectable)]
#[diesel(table_name = schema::invitations)]
pub(super) struct Invitation {
    pub id: InvitationId,
    pub organization_id: AccountId,
    pub role: String,
    pub user_id: Option<AccountId>,
    pub email: Option<String>,
    pub invited_by: AccountId,
    pub created_at: DateTime<Utc>,
    pub expires_at: DateTime<Utc>,
}

#[derive(Debug, Clone, Queryable)]
pub(super) struct Member {
    pub id: AccountId,
    pub handle: String,
    pub display_name: String,
    pub role: String,
    pub created_at: DateTime<Utc>,
}

// Views

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum AccountKind {
    User,
    Organization,
}

/// Who something belongs to or was made by, as anybody may see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct AccountSummary {
    /// `usr_…` or `org_…`.
    #[schema(value_type = AccountIdText)]
    pub id: String,
    pub kind: AccountKind,
    #[schema(value_type = HandleText)]
    pub handle: String,
    pub display_name: String,
}

/// The account a call acts for, as its owner sees it.
#[derive(Debug, Serialize, ToSchema)]
pub struct OwnAccount {
    #[serde(flatten)]
    pub summary: AccountSummary,
    /// A person's own address; only the person sees it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = "email")]
    pub email: Option<Secret<String>>,
    /// Whether the address was confirmed by its mailed link.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub email_confirmed: Option<bool>,
    pub is_operator: bool,
    /// The caller's role in the account: owner of one's own.
    pub role: Role,
    /// What this caller may do for the account.
    pub scopes: Vec<Scope>,
    pub is_pro: bool,
    /// Until when Pro is paid (business time).
    pub pro_until: Option<DateTime<Utc>>,
    pub created_at: DateTime<Utc>,
}

/// A sign-in.
#[derive(Debug, Serialize, ToSchema)]
pub struct SignIn {
    pub account: OwnAccount,
    #[schema(value_type = String)]
    pub access_token: Secret<String>,
    #[schema(value_type = String)]
    pub refresh_token: Secret<String>,
    /// Seconds until the access token expires.
    pub expires_in: i64,
}

/// An API key, without the key.
#[derive(Debug, Serialize, ToSchema)]
pub struct ApiKeyView {
    pub id: ApiKeyId,
    pub name: String,
    /// The first characters of the key.
    pub prefix: String,
    pub scopes: Vec<Scope>,
    /// The user who made it. The key works only while they belong to the account.
    pub created_by: AccountSummary,
    /// The key that made it, if a key did.
    pub minted_by: Option<ApiKeyId>,
    pub created_at: DateTime<Utc>,
    pub expires_at: Option<DateTime<Utc>>,
    /// To the minute.
    pub last_used_at: Option<DateTime<Utc>>,
}

/// A new API key. The key is shown this once.
#[derive(Debug, Serialize, ToSchema)]
pub struct NewApiKey {
    #[serde(flatten)]
    pub view: ApiKeyView,
    #[schema(value_type = String, pattern = "^rmk_")]
    pub key: Secret<String>,
}

/// A token for the benchmark tool's uploads, without the token.
#[derive(Debug, Serialize, ToSchema)]
pub struct UploadTokenView {
    pub id: UploadTokenId,
    pub name: String,
    /// The first characters of the token.
    pub prefix: String,
    /// The machine that its runs are bound to.
    pub machine_id: Option<MachineId>,
    /// The user who made it. The token works only while they belong to the account.
    pub created_by: AccountSummary,
    /// The API key that made it, if one did; revoking that one revokes the token.
    pub minted_by: Option<ApiKeyId>,
    pub created_at: DateTime<Utc>,
    pub expires_at: Option<DateTime<Utc>>,
    /// To the minute.
    pub last_used_at: Option<DateTime<Utc>>,
}

/// A new upload token. The token is shown this once.
#[derive(Debug, Serialize, ToSchema)]
pub struct NewUploadToken {
    #[serde(flatten)]
    pub view: UploadTokenView,
    #[schema(value_type = String, pattern = "^lilb_[A-Za-z0-9_-]{20,64}$")]
    pub token: Secret<String>,
}

/// An organization, and the caller's role in it if they have one.
#[derive(Debug, Serialize, ToSchema)]
pub struct OrganizationView {
    #[serde(flatten)]
    pub summary: AccountSummary,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    pub created_at: DateTime<Utc>,
}

/// A member of an organization.
#[derive(Debug, Serialize, ToSchema)]
pub struct MemberView {
    #[serde(flatten)]
    pub account: AccountSummary,
    pub role: Role,
    /// Since when.
    pub created_at: DateTime<Utc>,
}

/// An open invitation. Either `handle` or `email` names the addressee.
#[derive(Debug, Serialize, ToSchema)]
pub struct InvitationView {
    pub id: InvitationId,
    pub organization: AccountSummary,
    pub role: Role,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<HandleText>)]
    pub handle: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = "email")]
    pub email: Option<Secret<String>>,
    pub created_at: DateTime<Utc>,
    pub expires_at: DateTime<Utc>,
}
