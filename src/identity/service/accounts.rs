//! Accounts as other domains see them, and a person's own account.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use serde::Deserialize;
use serde_json::json;
use utoipa::ToSchema;

use super::registration::{checked_handle, new_account_name};
use crate::{
    base::{
        Code, Error, Result,
        clock::Clock,
        id::{AccountId, SessionId},
        secret::Secret,
        shape::NameText,
    },
    ctx::Ctx,
    db::{Conn, Db, Tx},
    identity::{
        audit::{Act, By, audit},
        caller::{Actor, Caller},
        email::Email,
        handle::{CLOSED_PREFIX, Handle},
        model::{Account, AccountSummary, EndReason, OwnAccount, ProFact},
        names, password,
        queries::{
            accounts::{self, NewAccount},
            invitations, keys, mailed, members, sessions,
        },
        scope::Role,
    },
};

/// The open account of a handle (`name` or `@name`).
///
/// # Errors
/// `not_found` when there is none.
pub async fn account_by_handle(conn: &mut Conn, handle: &str) -> Result<Account> {
    let handle: Handle = handle.parse().map_err(|_| Error::not_found("account"))?;
    accounts::account_fetch_by_handle(conn, &handle).await?.ok_or_else(|| Error::not_found("account"))
}

/// What `by:` fields show, for many accounts in one query; closed accounts under their new names.
///
/// # Errors
/// The database's own faults.
pub async fn account_summaries(conn: &mut Conn, ids: &[AccountId]) -> Result<HashMap<AccountId, AccountSummary>> {
    let found = accounts::account_list_by_ids(conn, ids).await?;
    Ok(found.into_iter().map(|account| (account.id, account.summary())).collect())
}

/// What a `by:` field shows.
///
/// # Errors
/// `internal` when there is no such row: an id in our own tables always has one.
pub async fn account_summary(conn: &mut Conn, id: AccountId) -> Result<AccountSummary> {
    account_summaries(conn, &[id]).await?.remove(&id).ok_or_else(|| Error::internal("an account id without a row"))
}

/// Whether a person and an account are the same or the person is a member of it, in whatever role.
///
/// # Errors
/// The database's own faults.
pub async fn belongs_to(conn: &mut Conn, user: AccountId, account: AccountId) -> Result<bool> {
    Ok(user == account || members::member_role(conn, account, user).await?.is_some())
}

/// A user made by the program itself (the demo): the address counts as confirmed.
pub struct NewUser<'a> {
    pub email: &'a str,
    pub handle: &'a str,
    pub display_name: &'a str,
    pub password: &'a Secret<String>,
}

/// # Errors
/// As registering: `invalid_input`, `handle_taken`, `email_taken`.
pub async fn create_user(ctx: &Ctx, new: NewUser<'_>) -> Result<Account> {
    let email: Email = new.email.parse().map_err(|e| Error::invalid("/email", "email", format!("{e}.")))?;
    let handle = checked_handle(ctx, new.handle)?;
    let display_name = names::check(new.display_name, "/display_name").map_err(|e| Error::invalid_fields(vec![e]))?;
    let hash = password::hash(ctx, new.password).await?;
    let now = ctx.clock.wall_now();
    let (email, handle, display_name, hash) = (&email, &handle, &display_name, &hash);
    ctx.db
        .tx("user_create", async |tx| {
            let new = NewAccount { id: AccountId::new(), is_organization: false, handle, display_name, now };
            let account = accounts::account_insert(tx, new).await?;
            accounts::user_insert(tx, account.id, email, hash, Some(now)).await?;
            Ok(account)
        })
        .await
}

/// An organization with its first owner.
///
/// # Errors
/// `invalid_input`, `handle_taken`.
pub async fn create_organization(ctx: &Ctx, by: By<'_>, owner: AccountId, handle: &str, display_name: Option<&str>) -> Result<Account> {
    let handle = &checked_handle(ctx, handle)?;
    let display_name = &new_account_name(display_name, handle).map_err(|e| Error::invalid_fields(vec![e]))?;
    let now = ctx.clock.wall_now();
    ctx.db
        .tx("organization_create", async |tx| {
            if !accounts::account_hold(tx, owner).await? {
                return Err(Error::not_found("account"));
            }
            let new = NewAccount { id: AccountId::new(), is_organization: true, handle, display_name, now };
            let account = accounts::account_insert(tx, new).await?;
            members::member_insert(tx, account.id, owner, Role::Owner, now).await?;
            let act = Act {
                by,
                account_id: Some(account.id),
                action: "organization.create",
                target: account.id_text(),
                details: json!({}),
                at: now,
            };
            audit(tx, act).await?;
            Ok(account)
        })
        .await
}

/// Makes a user an operator (`rigmark admin grant @handle`).
///
/// # Errors
/// `not_found` when no user has the handle.
pub async fn grant_operator(ctx: &Ctx, handle: &str) -> Result<AccountId> {
    set_operator(&ctx.db, &ctx.clock, handle, true).await
}

/// # Errors
/// `not_found` when no user has the handle.
pub async fn revoke_operator(ctx: &Ctx, handle: &str) -> Result<AccountId> {
    set_operator(&ctx.db, &ctx.clock, handle, false).await
}

/// Makes a user an operator or takes that away, for a command that has a database and no more.
///
/// # Errors
/// `not_found` when no user has the handle.
pub async fn set_operator(db: &Db, clock: &Clock, handle: &str, is_operator: bool) -> Result<AccountId> {
    let handle: Handle = handle.parse().map_err(|_| Error::not_found("user"))?;
    let handle = &handle;
    let at = clock.wall_now();
    db.tx("operator_set", async |tx| {
        let id = accounts::account_set_operator(tx, handle, is_operator).await?.ok_or_else(|| Error::not_found("user"))?;
        let action = if is_operator { "operator.grant" } else { "operator.revoke" };
        let target = crate::base::id::account_text(id, false);
        audit(tx, Act { by: By::System, account_id: Some(id), action, target, details: json!({}), at }).await?;
        Ok(id)
    })
    .await
}

/// Closes a person's account: the name, the address, the password, keys, sessions and memberships go, the row stays for the ledger. The caller
/// has made sure that nothing of the account still runs or is owed.
///
/// # Errors
/// `last_owner` while the user is the only owner of an organization; `not_found` when the account is closed already.
pub async fn account_close(tx: &mut Tx<'_>, by: By<'_>, user: AccountId, now: DateTime<Utc>) -> Result<()> {
    // Other owners cannot leave meanwhile; what the user founds or joins meanwhile holds the account's row and is seen by the check below.
    accounts::organization_lock_all(tx, user).await?;
    let random = data_encoding::HEXLOWER.encode(&rand::random::<[u8; 12]>());
    let handle: Handle = format!("{CLOSED_PREFIX}{random}").parse().map_err(Error::internal)?;
    if !accounts::account_pseudonymise(tx, user, &handle, now).await? {
        return Err(Error::not_found("account"));
    }
    if let Some(handle) = accounts::organization_owned_alone(tx, user).await? {
        return Err(Error::new(Code::LastOwner, format!("You are the only owner of @{handle}; make somebody else an owner first.")));
    }
    sessions::session_end_all(tx, user, None, EndReason::AccountClosed, now).await?;
    keys::key_revoke_of_account(tx, user, now).await?;
    invitations::invitation_forget_user(tx, user, now).await?;
    mailed::link_delete_of_user(tx, user).await?;
    members::member_delete_everywhere(tx, user).await?;
    let target = crate::base::id::account_text(user, false);
    audit(tx, Act { by, account_id: Some(user), action: "account.close", target, details: json!({}), at: now }).await
}

/// What an account's plan gives it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entitlements {
    pub is_pro: bool,
    pub pro_until: Option<DateTime<Utc>>,
    /// The platform's share of a host's gross, in basis points; frozen in a rental at acceptance.
    pub fee_basis_points: u16,
    /// Rate limits are this many times those of a free account.
    pub rate_factor: u32,
    /// How far ahead a rental may start.
    pub reservation_hours_ahead: i64,
    /// How many members an organization may have; none where nothing limits them.
    pub seats: Option<i32>,
}

impl Entitlements {
    /// # Errors
    /// `pro_required`, saying what for.
    pub fn require_pro(&self, what: &'static str) -> Result<()> {
        if self.is_pro { Ok(()) } else { Err(Error::new(Code::ProRequired, what)) }
    }
}

/// The plan of an account at this moment of business time.
///
/// # Errors
/// The database's own faults.
pub async fn entitlements(ctx: &Ctx, conn: &mut Conn, account: AccountId) -> Result<Entitlements> {
    let fact = accounts::pro_fact_fetch(conn, account).await?.unwrap_or_default();
    let tunables = &ctx.config.tunables;
    let free = Entitlements {
        is_pro: false,
        pro_until: fact.until(),
        fee_basis_points: tunables.fee_basis_points,
        rate_factor: 1,
        reservation_hours_ahead: tunables.reservation_hours_ahead,
        seats: None,
    };
    if fact == ProFact::default() {
        return Ok(free);
    }
    let now = ctx.business_now(conn).await?;
    if !fact.is_on(now) {
        return Ok(free);
    }
    Ok(Entitlements {
        is_pro: true,
        fee_basis_points: tunables.fee_basis_points_pro,
        rate_factor: tunables.pro_rate_factor,
        reservation_hours_ahead: tunables.pro_reservation_hours_ahead,
        seats: fact.seats_at(now),
        ..free
    })
}

/// Gives an account Pro until this instant (business time), beside what it has bought; one in the past takes it away.
///
/// # Errors
/// The database's own faults.
pub async fn set_pro_until(tx: &mut Tx<'_>, account: AccountId, until: DateTime<Utc>) -> Result<()> {
    accounts::pro_grant_set(tx, account, until).await
}

/// What an account has bought of Pro.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ProSale {
    /// As far as it is paid, or known (business time).
    pub until: Option<DateTime<Utc>>,
    /// It goes on beyond that until the seller says otherwise.
    pub renews: bool,
    /// Members it is for, of an organization.
    pub seats: Option<i32>,
}

/// Notes what was sold: the seller's word, in the transaction of its own rows.
///
/// # Errors
/// The database's own faults.
pub async fn set_pro_sale(tx: &mut Tx<'_>, account: AccountId, sale: ProSale) -> Result<()> {
    accounts::pro_sale_set(tx, account, sale.until, sale.renews && sale.until.is_some(), sale.seats).await
}

/// How many members an organization has.
///
/// # Errors
/// The database's own faults.
pub async fn member_count(conn: &mut Conn, organization: AccountId) -> Result<i64> {
    members::member_count(conn, organization).await
}

/// An organization whose Pro is for some members has room for one more. Its row is locked by this transaction.
///
/// # Errors
/// `no_free_seat`.
pub(super) async fn require_free_seat(ctx: &Ctx, tx: &mut Tx<'_>, organization: AccountId) -> Result<()> {
    let Some(seats) = entitlements(ctx, tx, organization).await?.seats else { return Ok(()) };
    if members::member_count(tx, organization).await? < i64::from(seats) {
        return Ok(());
    }
    let detail = format!("Pro of this organization is for {seats} members: POST /api/v1/pro/seats adds some.");
    Err(Error::new(Code::NoFreeSeat, detail))
}

/// The account the caller acts for. The address is shown to the signed-in person only, not to who holds a key of theirs.
///
/// # Errors
/// The database's own faults.
pub async fn own_account(ctx: &Ctx, conn: &mut Conn, caller: &Caller) -> Result<OwnAccount> {
    let account = accounts::account_fetch(conn, caller.account_id).await?.ok_or_else(|| Error::not_found("account"))?;
    let user = match caller.actor {
        Actor::User if !caller.is_organization => accounts::user_fetch(conn, caller.user_id).await?,
        _ => None,
    };
    let plan = entitlements(ctx, conn, caller.account_id).await?;
    Ok(OwnAccount {
        summary: account.summary(),
        email_confirmed: user.as_ref().map(|u| u.email_confirmed_at.is_some()),
        email: user.and_then(|u| u.email).map(Secret::new),
        is_operator: caller.is_operator,
        role: caller.role,
        scopes: caller.scopes.iter().collect(),
        is_pro: plan.is_pro,
        pro_until: plan.pro_until,
        created_at: account.created_at,
    })
}

/// The account of a person who is signing in.
pub(super) async fn signed_in_account(ctx: &Ctx, conn: &mut Conn, user: AccountId, session: SessionId) -> Result<OwnAccount> {
    let account = accounts::account_fetch(conn, user).await?.ok_or_else(|| Error::not_found("account"))?;
    own_account(ctx, conn, &Caller::signed_in(user, account.handle, account.is_operator, session)).await
}

/// Changes to one's own account.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct UpdateAccount {
    #[schema(value_type = Option<NameText>)]
    pub display_name: Option<String>,
}

/// # Errors
/// `invalid_input` for a bad name; `forbidden` while acting for an organization (it has a route of its own).
pub async fn update_own_account(ctx: &Ctx, caller: &Caller, update: UpdateAccount) -> Result<OwnAccount> {
    if caller.is_organization {
        return Err(Error::new(Code::Forbidden, "This changes your own account; for an organization use /api/v1/organizations/{handle}."));
    }
    if let Some(name) = update.display_name {
        let name = names::check(&name, "/display_name").map_err(|e| Error::invalid_fields(vec![e]))?;
        let name = &name;
        ctx.db.tx("account_update", async |tx| accounts::account_set_display_name(tx, caller.account_id, name).await).await?;
    }
    let mut conn = ctx.db.conn().await?;
    own_account(ctx, &mut conn, caller).await
}
