//! Inviting somebody into an organization, and accepting.

use chrono::TimeDelta;
use serde::Deserialize;
use serde_json::json;
use utoipa::ToSchema;

use super::{
    accounts::require_free_seat,
    organizations::{managed_organization, organization_by_handle},
};
use crate::{
    base::{Code, Error, FieldError, Result, id::InvitationId, secret::Secret, shape::HandleText},
    ctx::Ctx,
    db::{Conn, Tx},
    identity::{
        audit::{Act, By, audit},
        caller::{Caller, role_in},
        email::Email,
        handle::Handle,
        letters::{self, Letter},
        model::{Account, AccountKind, AccountSummary, Invitation, InvitationView, OrganizationView},
        queries::{
            accounts,
            invitations::{self as queries, Addressee, NewInvitation},
            members,
        },
        scope::Role,
    },
};

const INVITATION_VALID: TimeDelta = TimeDelta::days(14);

fn no_invitation() -> Error {
    Error::not_found("invitation")
}

/// An invitation to be sent: to an account by `handle`, or to whoever has the address `email`.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateInvitation {
    /// Of a person; give this or `email`.
    #[schema(value_type = Option<HandleText>)]
    pub handle: Option<String>,
    #[schema(value_type = Option<String>, format = "email")]
    pub email: Option<Secret<String>>,
    pub role: Role,
}

fn view(invitation: Invitation, handle: Option<String>, organization: AccountSummary) -> Result<InvitationView> {
    Ok(InvitationView {
        id: invitation.id,
        organization,
        role: Role::parse(&invitation.role).ok_or_else(|| Error::internal("a role that is not known"))?,
        handle,
        email: invitation.email.map(Secret::new),
        created_at: invitation.created_at,
        expires_at: invitation.expires_at,
    })
}

async fn addressee(conn: &mut Conn, form: &CreateInvitation) -> Result<(Addressee, Option<String>)> {
    match (&form.handle, &form.email) {
        (Some(handle), None) => {
            let unknown = || Error::invalid("/handle", "unknown_account", "No person has this handle.");
            let handle: Handle = handle.parse().map_err(|_| unknown())?;
            let account = accounts::account_fetch_by_handle(conn, &handle).await?.filter(|account| !account.is_organization());
            let account = account.ok_or_else(unknown)?;
            Ok((Addressee::User(account.id), Some(account.handle)))
        }
        (None, Some(email)) => {
            let email: Email = email.expose().parse().map_err(|e| Error::invalid("/email", "email", format!("{e}.")))?;
            Ok((Addressee::Email(email), None))
        }
        (Some(_), Some(_)) => Err(Error::invalid("/email", "one_of", "Name the addressee by handle or by email, not both.")),
        (None, None) => {
            let fault = |pointer| FieldError::new(pointer, "one_of", "Name the addressee by handle or by email.");
            Err(Error::invalid_fields(vec![fault("/handle"), fault("/email")]))
        }
    }
}

/// # Errors
/// `not_found` for who does not belong to the organization; `forbidden`; `already_member`; `invalid_state` while an invitation is open.
pub async fn create_invitation(ctx: &Ctx, caller: &Caller, handle: &str, form: CreateInvitation) -> Result<InvitationView> {
    let now = ctx.clock.wall_now();
    let form = &form;
    ctx.db
        .tx("invitation_create", async |tx| {
            let (organization, role) = managed_organization(tx, caller, handle).await?;
            if !role.may_assign(form.role) {
                return Err(Error::new(Code::Forbidden, format!("The role {} cannot give this role.", role.as_str())));
            }
            let (addressee, invited) = addressee(tx, form).await?;
            if let Addressee::User(user) = addressee
                && members::member_role(tx, organization.id, user).await?.is_some()
            {
                return Err(members::already_member());
            }
            queries::invitation_revoke_expired(tx, organization.id, now).await?;
            let new = NewInvitation {
                id: InvitationId::new(),
                organization_id: organization.id,
                role: form.role,
                addressee: &addressee,
                invited_by: caller.user_id,
                now,
                expires_at: now + INVITATION_VALID,
            };
            let invitation = queries::invitation_insert(tx, new).await?;
            letters::enqueue(ctx, tx, Letter::Invitation { id: invitation.id }).await?;
            let details = json!({ "role": form.role });
            audit(tx, act(caller, &organization, "invitation.create", invitation.id, details, now)).await?;
            view(invitation, invited, organization.summary())
        })
        .await
}

fn act<'a>(
    caller: &'a Caller,
    organization: &Account,
    action: &'static str,
    id: InvitationId,
    details: serde_json::Value,
    at: chrono::DateTime<chrono::Utc>,
) -> Act<'a> {
    Act { by: By::Caller(caller), account_id: Some(organization.id), action, target: id.to_string(), details, at }
}

/// Open invitations of an organization, newest first, for who may manage its members.
///
/// # Errors
/// `not_found`, `forbidden`.
pub async fn invitations_of_organization(
    ctx: &Ctx,
    conn: &mut Conn,
    caller: &Caller,
    handle: &str,
    before: Option<InvitationId>,
    limit: i64,
) -> Result<Vec<InvitationView>> {
    let organization = organization_by_handle(conn, handle).await?;
    let role = role_in(conn, caller, &organization).await?;
    if !role.manages_members() {
        return Err(Error::new(Code::Forbidden, format!("The role {} does not see invitations.", role.as_str())));
    }
    let found = queries::invitation_list(conn, organization.id, before, limit, ctx.clock.wall_now()).await?;
    found.into_iter().map(|(invitation, handle)| view(invitation, handle, organization.summary())).collect()
}

/// Open invitations to the caller, by account or by address, newest first.
///
/// # Errors
/// The database's own faults.
pub async fn invitations_to_me(
    ctx: &Ctx,
    conn: &mut Conn,
    caller: &Caller,
    before: Option<InvitationId>,
    limit: i64,
) -> Result<Vec<InvitationView>> {
    let email = accounts::user_fetch(conn, caller.user_id).await?.and_then(|user| user.email).unwrap_or_default();
    let found = queries::invitation_list_for(conn, caller.user_id, &email, before, limit, ctx.clock.wall_now()).await?;
    let of = |invitation: &Invitation, handle: String, display_name: String| AccountSummary {
        id: crate::base::id::account_text(invitation.organization_id, true),
        kind: AccountKind::Organization,
        handle,
        display_name,
    };
    found
        .into_iter()
        .map(|(invitation, handle, name)| {
            let organization = of(&invitation, handle, name);
            let invited = invitation.user_id.map(|_| caller.account_handle.clone());
            view(invitation, invited, organization)
        })
        .collect()
}

/// Joins an organization as its invitation says. An address is proof enough: in live mode every account has confirmed its own.
///
/// # Errors
/// `not_found` for an invitation that is not open or not the caller's, or whose sender may no longer give that role; `already_member`.
pub async fn accept_invitation(ctx: &Ctx, caller: &Caller, handle: &str, id: InvitationId) -> Result<OrganizationView> {
    let now = ctx.clock.wall_now();
    ctx.db
        .tx("invitation_accept", async |tx| {
            let found = organization_by_handle(tx, handle).await.map_err(|_| no_invitation())?;
            let organization = accounts::account_lock(tx, found.id).await?.ok_or_else(no_invitation)?;
            if !accounts::account_hold(tx, caller.user_id).await? {
                return Err(no_invitation());
            }
            let email = accounts::user_fetch(tx, caller.user_id).await?.and_then(|user| user.email).ok_or_else(no_invitation)?;
            let accepted = queries::invitation_accept(tx, organization.id, id, caller.user_id, &email, now).await?;
            let invitation = accepted.ok_or_else(no_invitation)?;
            let role = sender_may_still(tx, &invitation).await?;
            if members::member_role(tx, organization.id, caller.user_id).await?.is_none() {
                require_free_seat(ctx, tx, organization.id).await?;
            }
            members::member_insert(tx, organization.id, caller.user_id, role, now).await?;
            audit(tx, act(caller, &organization, "invitation.accept", id, json!({ "role": role }), now)).await?;
            Ok(OrganizationView { summary: organization.summary(), role: Some(role), created_at: organization.created_at })
        })
        .await
}

/// The invitation's role, if who sent it could still give it.
async fn sender_may_still(tx: &mut Tx<'_>, invitation: &Invitation) -> Result<Role> {
    let role = Role::parse(&invitation.role).ok_or_else(|| Error::internal("a role that is not known"))?;
    match members::member_role(tx, invitation.organization_id, invitation.invited_by).await? {
        Some(sender) if sender.may_assign(role) => Ok(role),
        _ => Err(no_invitation()),
    }
}

/// Takes an invitation back. Taking it back again is no error.
///
/// # Errors
/// `not_found`, `forbidden`.
pub async fn revoke_invitation(ctx: &Ctx, caller: &Caller, handle: &str, id: InvitationId) -> Result<()> {
    let now = ctx.clock.wall_now();
    ctx.db
        .tx("invitation_revoke", async |tx| {
            let (organization, _) = managed_organization(tx, caller, handle).await?;
            if !queries::invitation_revoke(tx, organization.id, id, now).await? {
                return Err(no_invitation());
            }
            audit(tx, act(caller, &organization, "invitation.revoke", id, json!({}), now)).await
        })
        .await
}
