CREATE TABLE webhook_endpoints (
    id uuid PRIMARY KEY,
    account_id uuid NOT NULL REFERENCES accounts (id),
    url text NOT NULL CONSTRAINT webhook_endpoints_url_length CHECK (char_length(url) BETWEEN 1 AND 2048),
    events text[] NOT NULL CONSTRAINT webhook_endpoints_some_events CHECK (cardinality(events) > 0),
    description text NOT NULL,
    is_enabled boolean NOT NULL,
    -- Why the service disabled it; null when its owner did, or while it is enabled.
    disabled_reason text CONSTRAINT webhook_endpoints_reason_known CHECK (disabled_reason IN ('gone', 'failing')),
    secret_sealed bytea NOT NULL,
    -- Signs beside the other until `old_secret_until`.
    old_secret_sealed bytea,
    old_secret_until timestamptz,
    -- Since then no try has succeeded.
    failing_since timestamptz,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    CONSTRAINT webhook_endpoints_reason_of_disabled CHECK (disabled_reason IS NULL OR NOT is_enabled),
    CONSTRAINT webhook_endpoints_old_secret CHECK ((old_secret_sealed IS NULL) = (old_secret_until IS NULL))
);
COMMENT ON TABLE webhook_endpoints IS 'Where accounts want to be told of events. Wall time.';
CREATE INDEX webhook_endpoints_account ON webhook_endpoints (account_id, id DESC);

CREATE TABLE webhook_events (
    id uuid PRIMARY KEY,
    account_id uuid NOT NULL REFERENCES accounts (id),
    event_type text NOT NULL,
    -- What is sent, byte for byte, at every try.
    body text NOT NULL,
    created_at timestamptz NOT NULL
);
COMMENT ON TABLE webhook_events IS 'Events that at least one webhook endpoint waited for, written in the transaction of what they tell; kept for 30 days. Wall time.';
CREATE INDEX webhook_events_account ON webhook_events (account_id);
CREATE INDEX webhook_events_created ON webhook_events (created_at);

CREATE TABLE webhook_deliveries (
    endpoint_id uuid NOT NULL REFERENCES webhook_endpoints (id) ON DELETE CASCADE,
    event_id uuid NOT NULL REFERENCES webhook_events (id) ON DELETE CASCADE,
    status text NOT NULL CONSTRAINT webhook_deliveries_status_known CHECK (status IN ('pending', 'delivered', 'failed')),
    -- Tries begun, and tries of the schedule begun: a retry that its owner asked for begins no new schedule.
    attempt integer NOT NULL DEFAULT 0,
    step integer NOT NULL DEFAULT 0,
    next_try_at timestamptz,
    -- Somebody is trying until then.
    lease_until timestamptz,
    status_code integer,
    duration_ms integer,
    error text,
    tried_at timestamptz,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (endpoint_id, event_id),
    CONSTRAINT webhook_deliveries_pending_next CHECK ((status = 'pending') = (next_try_at IS NOT NULL)),
    CONSTRAINT webhook_deliveries_pending_lease CHECK (lease_until IS NULL OR status = 'pending')
);
COMMENT ON TABLE webhook_deliveries IS 'One event on its way to one webhook endpoint, with the last try. Wall time.';
CREATE INDEX webhook_deliveries_event ON webhook_deliveries (event_id);
CREATE INDEX webhook_deliveries_due ON webhook_deliveries (endpoint_id, next_try_at) WHERE status = 'pending';
CREATE INDEX webhook_deliveries_leased ON webhook_deliveries (endpoint_id) WHERE lease_until IS NOT NULL;
