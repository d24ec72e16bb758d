//! Organizations and their members.

use serde::Deserialize;
use serde_json::json;
use utoipa::ToSchema;

use super::accounts::create_organization;
use crate::{
    base::{
        Code, Error, Result,
        id::{AccountId, account_text},
        shape::{HandleText, NameText},
    },
    ctx::Ctx,
    db::{Conn, Tx},
    identity::{
        audit::{Act, By, audit},
        caller::{Actor, Caller, role_in},
        handle::Handle,
        model::{Account, AccountKind, AccountSummary, Member, MemberView, OrganizationView},
        names,
        queries::{accounts, invitations, keys, members as queries},
        scope::Role,
    },
};

fn no_organization() -> Error {
    Error::not_found("organization")
}
fn not_allowed(role: Role) -> Error {
    Error::new(Code::Forbidden, format!("The role {} does not allow this.", role.as_str()))
}

/// The open organization of a handle.
pub(super) async fn organization_by_handle(conn: &mut Conn, handle: &str) -> Result<Account> {
    let handle: Handle = handle.parse().map_err(|_| no_organization())?;
    let account = accounts::account_fetch_by_handle(conn, &handle).await?;
    account.filter(Account::is_organization).ok_or_else(no_organization)
}

/// The organization and the caller's role in it; 404 for who does not belong to it.
async fn own_organization(conn: &mut Conn, caller: &Caller, handle: &str) -> Result<(Account, Role)> {
    let account = organization_by_handle(conn, handle).await?;
    let role = role_in(conn, caller, &account).await?;
    Ok((account, role))
}

/// As above for who may manage members, with the organization's row locked: no membership changes before this transaction ends.
pub(super) async fn managed_organization(tx: &mut Tx<'_>, caller: &Caller, handle: &str) -> Result<(Account, Role)> {
    let (account, role) = locked_organization(tx, caller, handle).await?;
    if role.manages_members() { Ok((account, role)) } else { Err(not_allowed(role)) }
}

async fn locked_organization(tx: &mut Tx<'_>, caller: &Caller, handle: &str) -> Result<(Account, Role)> {
    let account = organization_by_handle(tx, handle).await?;
    let account = accounts::account_lock(tx, account.id).await?.ok_or_else(no_organization)?;
    let role = role_in(tx, caller, &account).await?;
    Ok((account, role))
}

fn organization_view(account: &Account, role: Option<Role>) -> OrganizationView {
    OrganizationView { summary: account.summary(), role, created_at: account.created_at }
}

fn stored_role(text: &str) -> Result<Role> {
    Role::parse(text).ok_or_else(|| Error::internal("a role that is not known"))
}

fn member_view(member: Member) -> Result<MemberView> {
    let role = stored_role(&member.role)?;
    let id = account_text(member.id, false);
    let account = AccountSummary { id, kind: AccountKind::User, handle: member.handle, display_name: member.display_name };
    Ok(MemberView { account, role, created_at: member.created_at })
}

/// An organization to be founded.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateOrganization {
    /// 3 to 39 letters a-z, digits and single hyphens; one namespace with people.
    #[schema(value_type = HandleText)]
    pub handle: String,
    /// Default: the handle.
    #[schema(value_type = Option<NameText>)]
    pub display_name: Option<String>,
}

/// Founds an organization; the caller is its first owner.
///
/// # Errors
/// `invalid_input`, `handle_taken`.
pub async fn found_organization(ctx: &Ctx, caller: &Caller, form: CreateOrganization) -> Result<OrganizationView> {
    let by = By::Caller(caller);
    let account = create_organization(ctx, by, caller.user_id, &form.handle, form.display_name.as_deref()).await?;
    Ok(organization_view(&account, Some(Role::Owner)))
}

/// The organizations the caller belongs to, by handle; for a key of an organization that one.
///
/// # Errors
/// The database's own faults.
pub async fn organizations(conn: &mut Conn, caller: &Caller, after: Option<&str>, limit: i64) -> Result<Vec<OrganizationView>> {
    let found = queries::organization_list(conn, caller.user_id, after, limit).await?;
    let visible = |account: &Account| match caller.actor {
        Actor::User => true,
        Actor::ApiKey(_) => !caller.is_organization || account.id == caller.account_id,
    };
    found
        .into_iter()
        .filter(|(account, _)| visible(account))
        .map(|(account, role)| Ok(organization_view(&account, Some(stored_role(&role)?))))
        .collect()
}

/// An organization as anybody may see it; with the role for who belongs to it.
///
/// # Errors
/// `not_found`.
pub async fn organization(conn: &mut Conn, caller: Option<&Caller>, handle: &str) -> Result<OrganizationView> {
    let account = organization_by_handle(conn, handle).await?;
    let role = match caller {
        Some(caller) => match role_in(conn, caller, &account).await {
            Ok(role) => Some(role),
            Err(error) if error.code() == Code::NotFound => None,
            Err(error) => return Err(error),
        },
        None => None,
    };
    Ok(organization_view(&account, role))
}

/// Changes to an organization.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct UpdateOrganization {
    #[schema(value_type = Option<NameText>)]
    pub display_name: Option<String>,
}

/// # Errors
/// `not_found` for who does not belong to it, `forbidden` for a role that may not.
pub async fn update_organization(ctx: &Ctx, caller: &Caller, handle: &str, form: UpdateOrganization) -> Result<OrganizationView> {
    let name =
        form.display_name.map(|name| names::check(&name, "/display_name")).transpose().map_err(|e| Error::invalid_fields(vec![e]))?;
    let name = &name;
    ctx.db
        .tx("organization_update", async |tx| {
            let (mut account, role) = managed_organization(tx, caller, handle).await?;
            if let Some(name) = name {
                account = accounts::account_set_display_name(tx, account.id, name).await?.ok_or_else(no_organization)?;
            }
            Ok(organization_view(&account, Some(role)))
        })
        .await
}

/// The members, by handle.
///
/// # Errors
/// `not_found` for who does not belong to the organization.
pub async fn members(conn: &mut Conn, caller: &Caller, handle: &str, after: Option<&str>, limit: i64) -> Result<Vec<MemberView>> {
    let (account, _) = own_organization(conn, caller, handle).await?;
    queries::member_list(conn, account.id, after, limit).await?.into_iter().map(member_view).collect()
}

/// Another role for a member.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SetRole {
    pub role: Role,
}

/// # Errors
/// `not_found`; `forbidden` for a role that may not give or take these roles; `last_owner`.
pub async fn set_member_role(ctx: &Ctx, caller: &Caller, handle: &str, member: &str, form: SetRole) -> Result<MemberView> {
    let at = ctx.clock.wall_now();
    ctx.db
        .tx("member_set_role", async |tx| {
            let (account, role) = managed_organization(tx, caller, handle).await?;
            let target = member_of(tx, &account, member).await?;
            let old = stored_role(&target.role)?;
            if !role.may_assign(old) || !role.may_assign(form.role) {
                return Err(not_allowed(role));
            }
            if form.role != Role::Owner {
                keep_an_owner(tx, account.id, target.id, old).await?;
            }
            queries::member_set_role(tx, account.id, target.id, form.role).await?;
            let details = json!({ "from": old, "to": form.role });
            audit(tx, act(caller, &account, "member.set_role", target.id, details, at)).await?;
            member_view(Member { role: form.role.as_str().to_owned(), ..target })
        })
        .await
}

/// Removes a member, or leaves. Keys they made for the organization and invitations they sent end with it; being invited again revives none.
///
/// # Errors
/// `not_found`; `forbidden` for a role that may not remove this member; `last_owner`.
pub async fn remove_member(ctx: &Ctx, caller: &Caller, handle: &str, member: &str) -> Result<()> {
    let at = ctx.clock.wall_now();
    ctx.db
        .tx("member_remove", async |tx| {
            let (account, role) = locked_organization(tx, caller, handle).await?;
            let target = member_of(tx, &account, member).await?;
            let old = stored_role(&target.role)?;
            if target.id != caller.user_id && !role.may_assign(old) {
                return Err(not_allowed(role));
            }
            keep_an_owner(tx, account.id, target.id, old).await?;
            queries::member_delete(tx, account.id, target.id).await?;
            keys::key_revoke_of_member(tx, account.id, target.id, at).await?;
            invitations::invitation_revoke_by(tx, account.id, target.id, at).await?;
            audit(tx, act(caller, &account, "member.remove", target.id, json!({ "role": old }), at)).await
        })
        .await
}

fn act<'a>(
    caller: &'a Caller,
    organization: &Account,
    action: &'static str,
    target: AccountId,
    details: serde_json::Value,
    at: chrono::DateTime<chrono::Utc>,
) -> Act<'a> {
    Act { by: By::Caller(caller), account_id: Some(organization.id), action, target: account_text(target, false), details, at }
}

async fn member_of(tx: &mut Tx<'_>, organization: &Account, handle: &str) -> Result<Member> {
    let not_found = || Error::not_found("member");
    let handle: Handle = handle.parse().map_err(|_| not_found())?;
    let user = accounts::account_fetch_by_handle(tx, &handle).await?.ok_or_else(not_found)?;
    queries::member_fetch(tx, organization.id, user.id).await?.ok_or_else(not_found)
}

async fn keep_an_owner(tx: &mut Tx<'_>, organization: AccountId, target: AccountId, role: Role) -> Result<()> {
    if role == Role::Owner && queries::owner_count_but(tx, organization, target).await? == 0 {
        return Err(Error::new(Code::LastOwner, "This is the only owner; make somebody else an owner first."));
    }
    Ok(())
}
