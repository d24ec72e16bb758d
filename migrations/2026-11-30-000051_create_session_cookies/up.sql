CREATE TABLE session_cookies (
    token_sha256 bytea PRIMARY KEY CONSTRAINT session_cookies_sha256_length CHECK (octet_length(token_sha256) = 32),
    session_id uuid NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL
);
COMMENT ON TABLE session_cookies IS 'Hashes of what a browser that signed in on the pages sends back; one a session. Good for pages alone, until it expires or its session ends. Wall time.';
CREATE INDEX session_cookies_session ON session_cookies (session_id);
CREATE INDEX session_cookies_expiry ON session_cookies (expires_at);
