//! Memberships. Whoever changes one holds the organization's row (`account_lock`), so that the last owner is counted right.

use chrono::{DateTime, Utc};
use diesel::{ExpressionMethods, JoinOnDsl, OptionalExtension, QueryDsl};
use diesel_async::RunQueryDsl;

use crate::{
    base::{Code, Error, Result, id::AccountId},
    db::{
        Conn, OnConstraint, Tx,
        schema::{accounts, memberships, users},
    },
    identity::{
        model::{Account, Member},
        scope::Role,
    },
};

pub fn already_member() -> Error {
    Error::new(Code::AlreadyMember, "The account is a member of this organization.")
}

pub async fn member_insert(tx: &mut Tx<'_>, organization: AccountId, user: AccountId, role: Role, now: DateTime<Utc>) -> Result<()> {
    diesel::insert_into(memberships::table)
        .values((
            memberships::organization_id.eq(organization),
            memberships::user_id.eq(user),
            memberships::role.eq(role.as_str()),
            memberships::created_at.eq(now),
        ))
        .execute(&mut **tx)
        .await
        .on_constraint("memberships_pkey", already_member)?;
    Ok(())
}

pub async fn member_role(conn: &mut Conn, organization: AccountId, user: AccountId) -> Result<Option<Role>> {
    let query = memberships::table.filter(memberships::organization_id.eq(organization)).filter(memberships::user_id.eq(user));
    let role: Option<String> = query.select(memberships::role).first(conn).await.optional()?;
    Ok(role.as_deref().and_then(Role::parse))
}

pub async fn member_fetch(conn: &mut Conn, organization: AccountId, user: AccountId) -> Result<Option<Member>> {
    let query = memberships::table
        .inner_join(accounts::table.on(accounts::id.eq(memberships::user_id)))
        .filter(memberships::organization_id.eq(organization))
        .filter(memberships::user_id.eq(user))
        .select((accounts::id, accounts::handle, accounts::display_name, memberships::role, memberships::created_at));
    Ok(query.first(conn).await.optional()?)
}

/// By handle; `after` is the last handle of the page before.
pub async fn member_list(conn: &mut Conn, organization: AccountId, after: Option<&str>, limit: i64) -> Result<Vec<Member>> {
    let query = memberships::table
        .inner_join(accounts::table.on(accounts::id.eq(memberships::user_id)))
        .filter(memberships::organization_id.eq(organization))
        .filter(accounts::handle.gt(after.unwrap_or("")))
        .order(accounts::handle)
        .limit(limit)
        .select((accounts::id, accounts::handle, accounts::display_name, memberships::role, memberships::created_at));
    Ok(query.load(conn).await?)
}

/// The organizations of a user, by handle, with the user's role.
pub async fn organization_list(conn: &mut Conn, user: AccountId, after: Option<&str>, limit: i64) -> Result<Vec<(Account, String)>> {
    use diesel::SelectableHelper;
    let query = memberships::table
        .inner_join(accounts::table.on(accounts::id.eq(memberships::organization_id)))
        .filter(memberships::user_id.eq(user))
        .filter(accounts::closed_at.is_null())
        .filter(accounts::handle.gt(after.unwrap_or("")))
        .order(accounts::handle)
        .limit(limit)
        .select((Account::as_select(), memberships::role));
    Ok(query.load(conn).await?)
}

pub async fn member_count(conn: &mut Conn, organization: AccountId) -> Result<i64> {
    Ok(memberships::table.filter(memberships::organization_id.eq(organization)).count().get_result(conn).await?)
}

/// Owners other than `user`.
pub async fn owner_count_but(tx: &mut Tx<'_>, organization: AccountId, user: AccountId) -> Result<i64> {
    let others = memberships::table
        .filter(memberships::organization_id.eq(organization))
        .filter(memberships::role.eq(Role::Owner.as_str()))
        .filter(memberships::user_id.ne(user));
    Ok(others.count().get_result(&mut **tx).await?)
}

pub async fn member_set_role(tx: &mut Tx<'_>, organization: AccountId, user: AccountId, role: Role) -> Result<bool> {
    let row = memberships::table.filter(memberships::organization_id.eq(organization)).filter(memberships::user_id.eq(user));
    Ok(diesel::update(row).set(memberships::role.eq(role.as_str())).execute(&mut **tx).await? == 1)
}

pub async fn member_delete(tx: &mut Tx<'_>, organization: AccountId, user: AccountId) -> Result<bool> {
    let row = memberships::table.filter(memberships::organization_id.eq(organization)).filter(memberships::user_id.eq(user));
    Ok(diesel::delete(row).execute(&mut **tx).await? == 1)
}

/// Takes a user out of every organization.
pub async fn member_delete_everywhere(tx: &mut Tx<'_>, user: AccountId) -> Result<usize> {
    Ok(diesel::delete(memberships::table.filter(memberships::user_id.eq(user))).execute(&mut **tx).await?)
}

/// Who is written to about an account: the person, or the owners and admins of an organization.
pub async fn notice_readers(conn: &mut Conn, account: AccountId) -> Result<Vec<AccountId>> {
    let own = users::table.find(account.uuid()).filter(users::email.is_not_null()).select(users::account_id);
    let mut readers: Vec<AccountId> = own.load(conn).await?;
    let leading = memberships::table
        .filter(memberships::organization_id.eq(account.uuid()))
        .filter(memberships::role.eq_any([Role::Owner.as_str(), Role::Admin.as_str()]));
    readers.extend(leading.order(memberships::user_id).select(memberships::user_id).load::<AccountId>(conn).await?);
    Ok(readers)
}
