CREATE TABLE accounts (
    id uuid PRIMARY KEY,
    kind text NOT NULL CONSTRAINT accounts_kind_known CHECK (kind IN ('user', 'organization')),
    handle text NOT NULL
        CONSTRAINT accounts_handle_key UNIQUE
        CONSTRAINT accounts_handle_form CHECK (handle ~ '^[a-z0-9][a-z0-9-]{1,37}[a-z0-9]$' AND handle NOT LIKE '%--%'),
    handle_skeleton text NOT NULL CONSTRAINT accounts_handle_skeleton_key UNIQUE,
    display_name text NOT NULL CONSTRAINT accounts_display_name_length CHECK (char_length(display_name) BETWEEN 1 AND 80),
    is_operator boolean NOT NULL DEFAULT false,
    created_at timestamptz NOT NULL,
    closed_at timestamptz,
    CONSTRAINT accounts_operator_is_user CHECK (kind = 'user' OR NOT is_operator)
);
COMMENT ON TABLE accounts IS 'People and teams in one namespace of handles. A row is never deleted: closing it takes its name away, the ledger keeps pointing at it.';
COMMENT ON COLUMN accounts.handle_skeleton IS 'The handle with look-alike characters made equal (identity::handle); unique, so that no two handles look the same.';

CREATE TABLE users (
    account_id uuid PRIMARY KEY REFERENCES accounts (id),
    email text CONSTRAINT users_email_key UNIQUE
        CONSTRAINT users_email_form CHECK (email = lower(email) AND email ~ '^[^@[:space:]]+@[^@[:space:]]+$' AND char_length(email) <= 254),
    password_hash text NOT NULL,
    email_confirmed_at timestamptz
);
COMMENT ON TABLE users IS 'What only a person has. No e-mail address: the account is closed.';

CREATE TABLE memberships (
    organization_id uuid NOT NULL REFERENCES accounts (id),
    user_id uuid NOT NULL REFERENCES users (account_id),
    role text NOT NULL CONSTRAINT memberships_role_known CHECK (role IN ('owner', 'admin', 'member', 'billing')),
    created_at timestamptz NOT NULL,
    PRIMARY KEY (organization_id, user_id)
);
COMMENT ON TABLE memberships IS 'Who belongs to an organization, and as what. Removing a member deletes the row; audit_events remembers.';
CREATE INDEX memberships_user ON memberships (user_id);

CREATE TABLE invitations (
    id uuid PRIMARY KEY,
    organization_id uuid NOT NULL REFERENCES accounts (id),
    role text NOT NULL CONSTRAINT invitations_role_known CHECK (role IN ('owner', 'admin', 'member', 'billing')),
    user_id uuid REFERENCES users (account_id),
    email text CONSTRAINT invitations_email_form CHECK (email = lower(email) AND char_length(email) <= 254),
    invited_by uuid NOT NULL REFERENCES users (account_id),
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    accepted_at timestamptz,
    revoked_at timestamptz,
    CONSTRAINT invitations_one_addressee CHECK (num_nonnulls(user_id, email) = 1),
    CONSTRAINT invitations_one_end CHECK (num_nonnulls(accepted_at, revoked_at) <= 1)
);
COMMENT ON TABLE invitations IS 'Offers to join an organization, to an account or to an e-mail address. Open while neither accepted, revoked nor expired.';
CREATE INDEX invitations_organization ON invitations (organization_id);
CREATE INDEX invitations_user ON invitations (user_id);
CREATE INDEX invitations_email ON invitations (email) WHERE email IS NOT NULL;
CREATE INDEX invitations_invited_by ON invitations (invited_by);
CREATE UNIQUE INDEX invitations_open_user ON invitations (organization_id, user_id)
    WHERE user_id IS NOT NULL AND accepted_at IS NULL AND revoked_at IS NULL;
CREATE UNIQUE INDEX invitations_open_email ON invitations (organization_id, email)
    WHERE email IS NOT NULL AND accepted_at IS NULL AND revoked_at IS NULL;

CREATE TABLE sessions (
    id uuid PRIMARY KEY,
    user_id uuid NOT NULL REFERENCES users (account_id),
    created_at timestamptz NOT NULL,
    last_used_at timestamptz NOT NULL,
    ended_at timestamptz,
    end_reason text CONSTRAINT sessions_end_reason_known CHECK (
        end_reason IN ('logout', 'password_changed', 'password_reset', 'refresh_token_reused', 'account_closed', 'expired')
    ),
    CONSTRAINT sessions_end_has_reason CHECK ((ended_at IS NULL) = (end_reason IS NULL))
);
COMMENT ON TABLE sessions IS 'A sign-in: the family of its refresh tokens. Its end ends every token of it, access tokens included.';
CREATE INDEX sessions_user ON sessions (user_id);

CREATE TABLE refresh_tokens (
    token_sha256 bytea PRIMARY KEY CONSTRAINT refresh_tokens_sha256_length CHECK (octet_length(token_sha256) = 32),
    session_id uuid NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    rotated_at timestamptz
);
COMMENT ON TABLE refresh_tokens IS 'Hashes of refresh tokens. A token with rotated_at has been used: seeing it again ends the session.';
CREATE INDEX refresh_tokens_session ON refresh_tokens (session_id);
CREATE UNIQUE INDEX refresh_tokens_one_live ON refresh_tokens (session_id) WHERE rotated_at IS NULL;
CREATE INDEX refresh_tokens_expiry ON refresh_tokens (expires_at);

CREATE TABLE api_keys (
    id uuid PRIMARY KEY,
    account_id uuid NOT NULL REFERENCES accounts (id),
    created_by uuid NOT NULL REFERENCES users (account_id),
    minted_by uuid REFERENCES api_keys (id),
    name text NOT NULL CONSTRAINT api_keys_name_length CHECK (char_length(name) BETWEEN 1 AND 80),
    prefix text NOT NULL,
    key_sha256 bytea NOT NULL
        CONSTRAINT api_keys_key_sha256_key UNIQUE
        CONSTRAINT api_keys_sha256_length CHECK (octet_length(key_sha256) = 32),
    scopes text[] NOT NULL CONSTRAINT api_keys_scopes_known CHECK (
        array_position(scopes, NULL) IS NULL
        AND scopes <@ ARRAY['account:read', 'machines:read', 'machines:write', 'runs:write', 'listings:write', 'rentals:read',
                            'rentals:write', 'billing:read', 'billing:write', 'inference']
    ),
    created_at timestamptz NOT NULL,
    expires_at timestamptz,
    revoked_at timestamptz,
    last_used_at timestamptz
);
COMMENT ON TABLE api_keys IS 'Keys belong to one account and their maker: a key of an organization works only while its maker is a member. No scope: no right.';
COMMENT ON COLUMN api_keys.minted_by IS 'The key that made this key; revoking that one revokes this one.';
COMMENT ON COLUMN api_keys.prefix IS 'The first characters of the key, to tell keys apart in a list.';
CREATE INDEX api_keys_account ON api_keys (account_id, id);
CREATE INDEX api_keys_created_by ON api_keys (created_by);
CREATE INDEX api_keys_minted_by ON api_keys (minted_by);

CREATE TABLE registrations (
    id uuid PRIMARY KEY,
    email text NOT NULL,
    handle text NOT NULL,
    display_name text NOT NULL,
    password_hash text NOT NULL,
    token_sha256 bytea NOT NULL CONSTRAINT registrations_token_sha256_key UNIQUE,
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL
);
COMMENT ON TABLE registrations IS 'Live mode: registrations that wait for their mailed link. They reserve nothing, so that registering answers the same for a known address.';
CREATE INDEX registrations_email ON registrations (email);
CREATE INDEX registrations_expiry ON registrations (expires_at);

CREATE TABLE mail_links (
    id uuid PRIMARY KEY,
    purpose text NOT NULL CONSTRAINT mail_links_purpose_known CHECK (purpose IN ('confirm_email', 'reset_password')),
    user_id uuid NOT NULL REFERENCES users (account_id),
    email text NOT NULL,
    token_sha256 bytea NOT NULL CONSTRAINT mail_links_token_sha256_key UNIQUE,
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    used_at timestamptz
);
COMMENT ON TABLE mail_links IS 'Links sent to a user by mail: each works once, until it expires, and only while the address it went to is still the user''s.';
CREATE INDEX mail_links_user ON mail_links (user_id);
CREATE INDEX mail_links_expiry ON mail_links (expires_at);

CREATE TABLE entitlements (
    account_id uuid PRIMARY KEY REFERENCES accounts (id),
    pro_until timestamptz NOT NULL
);
COMMENT ON TABLE entitlements IS 'Pro as a fact, whoever sold it: an account has Pro before pro_until (business time).';

CREATE TABLE audit_events (
    id uuid PRIMARY KEY,
    at timestamptz NOT NULL,
    actor_user_id uuid REFERENCES accounts (id),
    actor_key_id uuid REFERENCES api_keys (id),
    account_id uuid REFERENCES accounts (id),
    action text NOT NULL,
    target text NOT NULL,
    details jsonb NOT NULL DEFAULT '{}'
);
COMMENT ON TABLE audit_events IS 'Who did what to what; append-only. No actor: the program itself or somebody at its command line. Holds no secret and no e-mail address.';
COMMENT ON COLUMN audit_events.account_id IS 'The account that the act was done for or to.';
CREATE INDEX audit_events_actor_user ON audit_events (actor_user_id);
CREATE INDEX audit_events_actor_key ON audit_events (actor_key_id);
CREATE INDEX audit_events_account ON audit_events (account_id, at DESC);

CREATE FUNCTION audit_events_refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'audit_events is append-only' USING ERRCODE = 'restrict_violation';
END $$;
CREATE TRIGGER audit_events_append_only BEFORE UPDATE OR DELETE ON audit_events
    FOR EACH ROW EXECUTE FUNCTION audit_events_refuse_change();
CREATE TRIGGER audit_events_no_truncate BEFORE TRUNCATE ON audit_events
    FOR EACH STATEMENT EXECUTE FUNCTION audit_events_refuse_change();
