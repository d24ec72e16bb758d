//! Invitations to organizations.

use chrono::{DateTime, Utc};
use diesel::{BoolExpressionMethods, ExpressionMethods, JoinOnDsl, OptionalExtension, QueryDsl, SelectableHelper};
use diesel_async::RunQueryDsl;

use crate::{
    base::{
        Code, Error, Result,
        id::{AccountId, InvitationId},
    },
    db::{
        Conn, OnConstraint, Tx,
        schema::{accounts, invitations},
    },
    identity::{email::Email, model::Invitation, scope::Role},
};

/// Who is invited: an account, or whoever has the address.
#[derive(Debug, Clone)]
pub enum Addressee {
    User(AccountId),
    Email(Email),
}

/// What a new invitation is made of.
pub struct NewInvitation<'a> {
    pub id: InvitationId,
    pub organization_id: AccountId,
    pub role: Role,
    pub addressee: &'a Addressee,
    pub invited_by: AccountId,
    pub now: DateTime<Utc>,
    pub expires_at: DateTime<Utc>,
}

fn open_exists() -> Error {
    Error::new(Code::InvalidState, "There is an open invitation for this addressee; revoke it first.")
}

pub async fn invitation_insert(tx: &mut Tx<'_>, new: NewInvitation<'_>) -> Result<Invitation> {
    let (user, email) = match new.addressee {
        Addressee::User(id) => (Some(*id), None),
        Addressee::Email(email) => (None, Some(email.expose())),
    };
    diesel::insert_into(invitations::table)
        .values((
            invitations::id.eq(new.id),
            invitations::organization_id.eq(new.organization_id),
            invitations::role.eq(new.role.as_str()),
            invitations::user_id.eq(user),
            invitations::email.eq(email),
            invitations::invited_by.eq(new.invited_by),
            invitations::created_at.eq(new.now),
            invitations::expires_at.eq(new.expires_at),
        ))
        .returning(Invitation::as_returning())
        .get_result(&mut **tx)
        .await
        .on_constraint("invitations_open_user", open_exists)
        .on_constraint("invitations_open_email", open_exists)
}

/// Revokes the organization's invitations that have run out, so that their addressees can be invited again.
pub async fn invitation_revoke_expired(tx: &mut Tx<'_>, organization: AccountId, now: DateTime<Utc>) -> Result<()> {
    let expired = invitations::table
        .filter(invitations::organization_id.eq(organization))
        .filter(invitations::accepted_at.is_null())
        .filter(invitations::revoked_at.is_null())
        .filter(invitations::expires_at.le(now));
    diesel::update(expired).set(invitations::revoked_at.eq(now)).execute(&mut **tx).await?;
    Ok(())
}

/// Open invitations of an organization with the invited account's handle, newest first.
pub async fn invitation_list(
    conn: &mut Conn,
    organization: AccountId,
    before: Option<InvitationId>,
    limit: i64,
    now: DateTime<Utc>,
) -> Result<Vec<(Invitation, Option<String>)>> {
    use diesel::NullableExpressionMethods;
    let mut query = invitations::table
        .left_join(accounts::table.on(invitations::user_id.eq(accounts::id.nullable())))
        .filter(invitations::organization_id.eq(organization))
        .filter(invitations::accepted_at.is_null())
        .filter(invitations::revoked_at.is_null())
        .filter(invitations::expires_at.gt(now))
        .order(invitations::id.desc())
        .limit(limit)
        .select((Invitation::as_select(), accounts::handle.nullable()))
        .into_boxed();
    if let Some(before) = before {
        query = query.filter(invitations::id.lt(before));
    }
    Ok(query.load(conn).await?)
}

/// Open invitations to this user, by account or by address, with the organization's handle and name, newest first.
pub async fn invitation_list_for(
    conn: &mut Conn,
    user: AccountId,
    email: &str,
    before: Option<InvitationId>,
    limit: i64,
    now: DateTime<Utc>,
) -> Result<Vec<(Invitation, String, String)>> {
    let mut query = invitations::table
        .inner_join(accounts::table.on(accounts::id.eq(invitations::organization_id)))
        .filter(invitations::user_id.eq(user).or(invitations::email.eq(email)))
        .filter(accounts::closed_at.is_null())
        .filter(invitations::accepted_at.is_null())
        .filter(invitations::revoked_at.is_null())
        .filter(invitations::expires_at.gt(now))
        .order(invitations::id.desc())
        .limit(limit)
        .select((Invitation::as_select(), accounts::handle, accounts::display_name))
        .into_boxed();
    if let Some(before) = before {
        query = query.filter(invitations::id.lt(before));
    }
    Ok(query.load(conn).await?)
}

/// An invitation with its organization's handle and name.
pub async fn invitation_fetch(conn: &mut Conn, id: InvitationId) -> Result<Option<(Invitation, String, String)>> {
    let query = invitations::table
        .inner_join(accounts::table.on(accounts::id.eq(invitations::organization_id)))
        .filter(invitations::id.eq(id))
        .filter(accounts::closed_at.is_null())
        .select((Invitation::as_select(), accounts::handle, accounts::display_name));
    Ok(query.first(conn).await.optional()?)
}

/// Takes an open invitation that is for this user. `None`: there is none.
pub async fn invitation_accept(
    tx: &mut Tx<'_>,
    organization: AccountId,
    id: InvitationId,
    user: AccountId,
    email: &str,
    now: DateTime<Utc>,
) -> Result<Option<Invitation>> {
    let open = invitations::table
        .filter(invitations::id.eq(id))
        .filter(invitations::organization_id.eq(organization))
        .filter(invitations::user_id.eq(user).or(invitations::email.eq(email)))
        .filter(invitations::accepted_at.is_null())
        .filter(invitations::revoked_at.is_null())
        .filter(invitations::expires_at.gt(now));
    let accepted = diesel::update(open).set(invitations::accepted_at.eq(now)).returning(Invitation::as_returning());
    Ok(accepted.get_result(&mut **tx).await.optional()?)
}

/// Whether there is such an invitation; when it is open it is revoked.
pub async fn invitation_revoke(tx: &mut Tx<'_>, organization: AccountId, id: InvitationId, now: DateTime<Utc>) -> Result<bool> {
    let own = invitations::table.filter(invitations::id.eq(id)).filter(invitations::organization_id.eq(organization));
    let open = own.filter(invitations::accepted_at.is_null()).filter(invitations::revoked_at.is_null());
    diesel::update(open).set(invitations::revoked_at.eq(now)).execute(&mut **tx).await?;
    Ok(own.count().get_result::<i64>(&mut **tx).await? == 1)
}

/// Revokes the open invitations that a former member made.
pub async fn invitation_revoke_by(tx: &mut Tx<'_>, organization: AccountId, inviter: AccountId, now: DateTime<Utc>) -> Result<()> {
    let open = invitations::table
        .filter(invitations::organization_id.eq(organization))
        .filter(invitations::invited_by.eq(inviter))
        .filter(invitations::accepted_at.is_null())
        .filter(invitations::revoked_at.is_null());
    diesel::update(open).set(invitations::revoked_at.eq(now)).execute(&mut **tx).await?;
    Ok(())
}

/// Takes a closed user's address and open invitations away.
pub async fn invitation_forget_user(tx: &mut Tx<'_>, user: AccountId, now: DateTime<Utc>) -> Result<()> {
    let open = invitations::table
        .filter(invitations::user_id.eq(user).or(invitations::invited_by.eq(user)))
        .filter(invitations::accepted_at.is_null())
        .filter(invitations::revoked_at.is_null());
    diesel::update(open).set(invitations::revoked_at.eq(now)).execute(&mut **tx).await?;
    Ok(())
}
