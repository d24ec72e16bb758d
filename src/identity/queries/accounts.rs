//! Accounts, users, entitlements and the audit.

use chrono::{DateTime, Utc};
use diesel::{ExpressionMethods, JoinOnDsl, OptionalExtension, QueryDsl, SelectableHelper, dsl::exists, select};
use diesel_async::RunQueryDsl;

use crate::{
    base::{
        Code, Error, Result,
        id::{AccountId, ApiKeyId},
    },
    db::{
        Conn, OnConstraint, Tx,
        schema::{accounts, audit_events, entitlements, memberships, users},
    },
    identity::{
        email::Email,
        handle::Handle,
        model::{Account, Credentials, ProFact, User},
        scope::Role,
    },
};

/// What a new account is made of.
pub struct NewAccount<'a> {
    pub id: AccountId,
    pub is_organization: bool,
    pub handle: &'a Handle,
    pub display_name: &'a str,
    pub now: DateTime<Utc>,
}

pub fn handle_taken() -> Error {
    Error::new(Code::HandleTaken, "This handle is taken, reserved or too like another.")
}
pub fn email_taken() -> Error {
    Error::new(Code::EmailTaken, "This e-mail address has an account.")
}

pub async fn account_insert(tx: &mut Tx<'_>, new: NewAccount<'_>) -> Result<Account> {
    diesel::insert_into(accounts::table)
        .values((
            accounts::id.eq(new.id),
            accounts::kind.eq(if new.is_organization { "organization" } else { "user" }),
            accounts::handle.eq(new.handle.as_str()),
            accounts::handle_skeleton.eq(new.handle.skeleton()),
            accounts::display_name.eq(new.display_name),
            accounts::created_at.eq(new.now),
        ))
        .returning(Account::as_returning())
        .get_result(&mut **tx)
        .await
        .on_constraint("accounts_handle_key", handle_taken)
        .on_constraint("accounts_handle_skeleton_key", handle_taken)
}

pub async fn user_insert(
    tx: &mut Tx<'_>,
    id: AccountId,
    email: &Email,
    password_hash: &str,
    confirmed_at: Option<DateTime<Utc>>,
) -> Result<()> {
    diesel::insert_into(users::table)
        .values((
            users::account_id.eq(id),
            users::email.eq(email.expose()),
            users::password_hash.eq(password_hash),
            users::email_confirmed_at.eq(confirmed_at),
        ))
        .execute(&mut **tx)
        .await
        .on_constraint("users_email_key", email_taken)?;
    Ok(())
}

/// Open accounts only.
pub async fn account_fetch(conn: &mut Conn, id: AccountId) -> Result<Option<Account>> {
    let query = accounts::table.filter(accounts::id.eq(id)).filter(accounts::closed_at.is_null());
    Ok(query.select(Account::as_select()).first(conn).await.optional()?)
}

/// Open accounts only.
pub async fn account_fetch_by_handle(conn: &mut Conn, handle: &Handle) -> Result<Option<Account>> {
    let query = accounts::table.filter(accounts::handle.eq(handle.as_str())).filter(accounts::closed_at.is_null());
    Ok(query.select(Account::as_select()).first(conn).await.optional()?)
}

/// Whether an account, open or closed, has this handle or one that looks like it.
pub async fn handle_is_taken(conn: &mut Conn, handle: &Handle) -> Result<bool> {
    Ok(select(exists(accounts::table.filter(accounts::handle_skeleton.eq(handle.skeleton())))).get_result(conn).await?)
}

/// Closed ones too: what they did stays theirs.
pub async fn account_list_by_ids(conn: &mut Conn, ids: &[AccountId]) -> Result<Vec<Account>> {
    Ok(accounts::table.filter(accounts::id.eq_any(ids)).select(Account::as_select()).load(conn).await?)
}

/// Locks an open account's row: members of an organization change one after the other.
pub async fn account_lock(tx: &mut Tx<'_>, id: AccountId) -> Result<Option<Account>> {
    let query = accounts::table.filter(accounts::id.eq(id)).filter(accounts::closed_at.is_null());
    Ok(query.select(Account::as_select()).for_update().first(&mut **tx).await.optional()?)
}

/// Holds an open account's row against [`account_lock`] and closing: an organization's members stay as they are, a person stays open, until
/// this transaction ends. Others may hold it too.
pub async fn account_hold(tx: &mut Tx<'_>, id: AccountId) -> Result<bool> {
    let query = accounts::table.filter(accounts::id.eq(id)).filter(accounts::closed_at.is_null()).select(accounts::id);
    Ok(query.for_key_share().first::<AccountId>(&mut **tx).await.optional()?.is_some())
}

pub async fn account_set_display_name(tx: &mut Tx<'_>, id: AccountId, display_name: &str) -> Result<Option<Account>> {
    let target = accounts::table.filter(accounts::id.eq(id)).filter(accounts::closed_at.is_null());
    let updated = diesel::update(target).set(accounts::display_name.eq(display_name)).returning(Account::as_returning());
    Ok(updated.get_result(&mut **tx).await.optional()?)
}

/// `None`: no open user has this handle.
pub async fn account_set_operator(tx: &mut Tx<'_>, handle: &Handle, is_operator: bool) -> Result<Option<AccountId>> {
    let target = accounts::table
        .filter(accounts::handle.eq(handle.as_str()))
        .filter(accounts::kind.eq("user"))
        .filter(accounts::closed_at.is_null());
    let updated = diesel::update(target).set(accounts::is_operator.eq(is_operator)).returning(accounts::id);
    Ok(updated.get_result(&mut **tx).await.optional()?)
}

/// Takes the name and the person away from an account. `false`: it is closed already.
pub async fn account_pseudonymise(tx: &mut Tx<'_>, id: AccountId, handle: &Handle, now: DateTime<Utc>) -> Result<bool> {
    let closed = diesel::update(accounts::table.filter(accounts::id.eq(id)).filter(accounts::closed_at.is_null()))
        .set((
            accounts::handle.eq(handle.as_str()),
            accounts::handle_skeleton.eq(handle.skeleton()),
            accounts::display_name.eq("Closed account"),
            accounts::is_operator.eq(false),
            accounts::closed_at.eq(now),
        ))
        .execute(&mut **tx)
        .await?;
    diesel::update(users::table.filter(users::account_id.eq(id)))
        .set((users::email.eq(None::<String>), users::email_confirmed_at.eq(None::<DateTime<Utc>>), users::password_hash.eq("")))
        .execute(&mut **tx)
        .await?;
    Ok(closed == 1)
}

pub async fn user_fetch(conn: &mut Conn, id: AccountId) -> Result<Option<User>> {
    Ok(users::table.filter(users::account_id.eq(id)).select(User::as_select()).first(conn).await.optional()?)
}

pub async fn credentials_fetch_by_email(conn: &mut Conn, email: &Email) -> Result<Option<Credentials>> {
    let query = users::table
        .inner_join(accounts::table.on(accounts::id.eq(users::account_id)))
        .filter(users::email.eq(email.expose()))
        .filter(accounts::closed_at.is_null());
    Ok(query.select(Credentials::as_select()).first(conn).await.optional()?)
}

/// With the user's address.
pub async fn credentials_fetch_by_handle(conn: &mut Conn, handle: &Handle) -> Result<Option<(Credentials, Option<String>)>> {
    let query = users::table
        .inner_join(accounts::table.on(accounts::id.eq(users::account_id)))
        .filter(accounts::handle.eq(handle.as_str()))
        .filter(accounts::closed_at.is_null());
    Ok(query.select((Credentials::as_select(), users::email)).first(conn).await.optional()?)
}

pub async fn credentials_fetch(conn: &mut Conn, id: AccountId) -> Result<Option<Credentials>> {
    Ok(users::table.filter(users::account_id.eq(id)).select(Credentials::as_select()).first(conn).await.optional()?)
}

/// Whether this is still the user's hash, held so that the password cannot be changed before this transaction ends: no session begins with a
/// password after the change of it has ended the others.
pub async fn user_hold_password(tx: &mut Tx<'_>, id: AccountId, hash: &str) -> Result<bool> {
    let query = users::table.filter(users::account_id.eq(id)).filter(users::password_hash.eq(hash)).select(users::account_id);
    Ok(query.for_share().first::<AccountId>(&mut **tx).await.optional()?.is_some())
}

/// Puts a new hash in the place of `old`. `false`: the password has been changed meanwhile.
pub async fn user_replace_password(tx: &mut Tx<'_>, id: AccountId, old: &str, new: &str) -> Result<bool> {
    let target = users::table.filter(users::account_id.eq(id)).filter(users::password_hash.eq(old));
    Ok(diesel::update(target).set(users::password_hash.eq(new)).execute(&mut **tx).await? == 1)
}

pub async fn user_set_password(tx: &mut Tx<'_>, id: AccountId, hash: &str) -> Result<()> {
    diesel::update(users::table.filter(users::account_id.eq(id))).set(users::password_hash.eq(hash)).execute(&mut **tx).await?;
    Ok(())
}

/// Marks `email` as confirmed. `false`: it is no longer this user's address.
pub async fn user_confirm_email(tx: &mut Tx<'_>, id: AccountId, email: &str, now: DateTime<Utc>) -> Result<bool> {
    let target = users::table.filter(users::account_id.eq(id)).filter(users::email.eq(email));
    Ok(diesel::update(target).set(users::email_confirmed_at.eq(now)).execute(&mut **tx).await? == 1)
}

/// Locks the organizations of a user, in the order of their ids.
pub async fn organization_lock_all(tx: &mut Tx<'_>, user: AccountId) -> Result<()> {
    let own = memberships::table.filter(memberships::user_id.eq(user)).select(memberships::organization_id);
    let query = accounts::table.filter(accounts::id.eq_any(own)).order(accounts::id).select(accounts::id);
    query.for_update().load::<AccountId>(&mut **tx).await?;
    Ok(())
}

/// An organization that this user is the only owner of.
pub async fn organization_owned_alone(tx: &mut Tx<'_>, user: AccountId) -> Result<Option<String>> {
    let others = diesel::alias!(memberships as others);
    let has_other_owner = exists(
        others
            .filter(others.field(memberships::organization_id).eq(memberships::organization_id))
            .filter(others.field(memberships::role).eq(Role::Owner.as_str()))
            .filter(others.field(memberships::user_id).ne(user)),
    );
    let query = memberships::table
        .inner_join(accounts::table.on(accounts::id.eq(memberships::organization_id)))
        .filter(memberships::user_id.eq(user))
        .filter(memberships::role.eq(Role::Owner.as_str()))
        .filter(diesel::dsl::not(has_other_owner));
    Ok(query.select(accounts::handle).first(&mut **tx).await.optional()?)
}

pub async fn pro_fact_fetch(conn: &mut Conn, id: AccountId) -> Result<Option<ProFact>> {
    Ok(entitlements::table.filter(entitlements::account_id.eq(id)).select(ProFact::as_select()).first(conn).await.optional()?)
}

pub async fn pro_grant_set(tx: &mut Tx<'_>, id: AccountId, until: DateTime<Utc>) -> Result<()> {
    diesel::insert_into(entitlements::table)
        .values((entitlements::account_id.eq(id), entitlements::granted_until.eq(until)))
        .on_conflict(entitlements::account_id)
        .do_update()
        .set(entitlements::granted_until.eq(until))
        .execute(&mut **tx)
        .await?;
    Ok(())
}

pub async fn pro_sale_set(tx: &mut Tx<'_>, id: AccountId, until: Option<DateTime<Utc>>, renews: bool, seats: Option<i32>) -> Result<()> {
    let sale = (entitlements::sold_until.eq(until), entitlements::renews.eq(renews), entitlements::seats.eq(seats));
    diesel::insert_into(entitlements::table)
        .values((entitlements::account_id.eq(id), sale))
        .on_conflict(entitlements::account_id)
        .do_update()
        .set(sale)
        .execute(&mut **tx)
        .await?;
    Ok(())
}

/// A row of the audit.
pub struct NewAuditEvent {
    pub at: DateTime<Utc>,
    pub actor_user_id: Option<AccountId>,
    pub actor_key_id: Option<ApiKeyId>,
    pub account_id: Option<AccountId>,
    pub action: &'static str,
    pub target: String,
    pub details: serde_json::Value,
}

pub async fn audit_event_insert(tx: &mut Tx<'_>, event: NewAuditEvent) -> Result<()> {
    diesel::insert_into(audit_events::table)
        .values((
            audit_events::id.eq(uuid::Uuid::now_v7()),
            audit_events::at.eq(event.at),
            audit_events::actor_user_id.eq(event.actor_user_id),
            audit_events::actor_key_id.eq(event.actor_key_id),
            audit_events::account_id.eq(event.account_id),
            audit_events::action.eq(event.action),
            audit_events::target.eq(event.target),
            audit_events::details.eq(event.details),
        ))
        .execute(&mut **tx)
        .await?;
    Ok(())
}
