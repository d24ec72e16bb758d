-- btree_gist lets an exclusion constraint compare a machine by equality beside a time range by overlap.
CREATE EXTENSION IF NOT EXISTS btree_gist;

CREATE TABLE business_clock (
    id smallint PRIMARY KEY DEFAULT 1 CONSTRAINT business_clock_one_row CHECK (id = 1),
    offset_microseconds bigint NOT NULL DEFAULT 0
);
COMMENT ON TABLE business_clock IS 'One row: how far business time is ahead of wall time. Always 0 outside the sandbox.';
INSERT INTO business_clock (id) VALUES (1);

CREATE TABLE jobs (
    id uuid PRIMARY KEY,
    kind text NOT NULL,
    payload jsonb NOT NULL,
    dedupe_key text,
    state text NOT NULL DEFAULT 'ready' CONSTRAINT jobs_state_known CHECK (state IN ('ready', 'running', 'done', 'dead')),
    priority smallint NOT NULL DEFAULT 0,
    run_at timestamptz NOT NULL,
    attempts integer NOT NULL DEFAULT 0,
    attempts_max integer NOT NULL DEFAULT 10,
    lease_until timestamptz,
    last_error text,
    created_at timestamptz NOT NULL,
    finished_at timestamptz
);
COMMENT ON TABLE jobs IS 'Work that follows a committed change. Taken by lease, at least once; wall time.';
CREATE INDEX jobs_due ON jobs (priority DESC, run_at) WHERE state = 'ready';
CREATE INDEX jobs_leased ON jobs (lease_until) WHERE state = 'running';
CREATE UNIQUE INDEX jobs_dedupe ON jobs (kind, dedupe_key) WHERE state = 'ready' AND dedupe_key IS NOT NULL;
