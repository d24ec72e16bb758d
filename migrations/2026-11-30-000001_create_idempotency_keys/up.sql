-- No foreign key to accounts: the toolkit knows no domain, and rows live for a day.
CREATE TABLE idempotency_keys (
    account_id uuid NOT NULL,
    route text NOT NULL,
    key text NOT NULL,
    body_sha256 bytea NOT NULL CONSTRAINT idempotency_keys_body_sha256_length CHECK (octet_length(body_sha256) = 32),
    state text NOT NULL DEFAULT 'running' CONSTRAINT idempotency_keys_state_known CHECK (state IN ('running', 'done')),
    lease_id uuid NOT NULL,
    lease_until timestamptz NOT NULL,
    status smallint,
    response text,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (account_id, route, key),
    CONSTRAINT idempotency_keys_done_has_response CHECK ((state = 'done') = (status IS NOT NULL AND response IS NOT NULL))
);
COMMENT ON TABLE idempotency_keys IS 'Answers to requests with an Idempotency-Key. Wall time; swept after a day.';
COMMENT ON COLUMN idempotency_keys.route IS 'Method and path, parameters included: the same key for two rentals is two keys.';
COMMENT ON COLUMN idempotency_keys.lease_id IS 'Who runs it: an attempt whose lease was taken over can no longer complete.';
CREATE INDEX idempotency_keys_created_at ON idempotency_keys (created_at);
