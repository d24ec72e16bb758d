//! Use cases, a file for each group; what other domains call stands in `accounts`.

mod accounts;
mod addresses;
mod cookies;
mod invitations;
mod keys;
mod mailed;
mod organizations;
mod passwords;
mod registration;
mod sessions;

pub use accounts::{
    Entitlements, NewUser, ProSale, UpdateAccount, account_by_handle, account_close, account_summaries, account_summary, belongs_to,
    create_organization, create_user, entitlements, grant_operator, member_count, own_account, revoke_operator, set_operator, set_pro_sale,
    set_pro_until, update_own_account,
};
pub use addresses::{is_known_address, remember_address};
pub(super) use cookies::of_cookie;
pub use cookies::{TypedName, sign_in, sign_out, typed_name};
pub use invitations::{
    CreateInvitation, accept_invitation, create_invitation, invitations_of_organization, invitations_to_me, revoke_invitation,
};
pub use keys::{CreateKey, CreateUploadToken, api_keys, create_key, create_upload_token, revoke_key, revoke_upload_token, upload_tokens};
pub use mailed::{ConfirmEmail, confirm_email, notify, request_confirmation, sweep};
pub use organizations::{
    CreateOrganization, SetRole, UpdateOrganization, found_organization, members, organization, organizations, remove_member,
    set_member_role, update_organization,
};
pub use passwords::{ChangePassword, RequestReset, ResetPassword, change_password, request_reset, reset_password};
pub use registration::{ConfirmRegistration, Mailed, Register, Registered, confirm_registration, register};
pub use sessions::{Login, Logout, Refresh, login, logout, refresh};
