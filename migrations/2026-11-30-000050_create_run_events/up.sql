CREATE TABLE run_events (
    sequence bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    run_id uuid NOT NULL REFERENCES runs (id),
    at timestamptz NOT NULL,
    kind text NOT NULL CONSTRAINT run_events_kind_known CHECK (kind IN (
        'uploaded', 'verdict', 'verdict_recomputed', 'reviewed', 'reopened', 'answered', 'remeasured', 'disputed', 'dispute_ended',
        'sent_to_review', 'stale')),
    account_id uuid REFERENCES accounts (id),
    user_id uuid REFERENCES accounts (id),
    details jsonb NOT NULL DEFAULT '{}'
);
COMMENT ON TABLE run_events IS 'What happened to a run, for anyone who may read the run; append-only. The one place that remembers it: runs and run_standings hold what is, audit_events has none of it. Business time.';
COMMENT ON COLUMN run_events.account_id IS 'Whose handle is shown: the uploader''s account, or the operator; null: the program itself.';
COMMENT ON COLUMN run_events.user_id IS 'The person who acted, also where the account is an organization; shown to nobody.';
COMMENT ON COLUMN run_events.details IS 'The members of the event''s kind; public.';
CREATE INDEX run_events_run ON run_events (run_id, sequence);
CREATE INDEX run_events_account ON run_events (account_id);
CREATE INDEX run_events_user ON run_events (user_id);
-- An uploader answers once.
CREATE UNIQUE INDEX run_events_one_answer ON run_events (run_id) WHERE kind = 'answered';

CREATE FUNCTION run_events_refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'run_events is append-only' USING ERRCODE = 'restrict_violation';
END $$;
CREATE TRIGGER run_events_append_only BEFORE UPDATE OR DELETE ON run_events
    FOR EACH ROW EXECUTE FUNCTION run_events_refuse_change();
CREATE TRIGGER run_events_no_truncate BEFORE TRUNCATE ON run_events
    FOR EACH STATEMENT EXECUTE FUNCTION run_events_refuse_change();

-- Runs from before: what their rows still tell.
INSERT INTO run_events (run_id, at, kind, account_id)
    SELECT id, created_at, 'uploaded', account_id FROM runs ORDER BY created_at, id;
INSERT INTO run_events (run_id, at, kind, details)
    SELECT r.id, r.created_at, 'verdict', jsonb_build_object(
        'verdict', CASE WHEN r.reviewed_at IS NULL THEN r.status WHEN 'error' = ANY (f.severities) THEN 'rejected'
                        WHEN 'suspicious' = ANY (f.severities) THEN 'needs_review' ELSE 'verified' END,
        'rules_version', r.rules_version, 'findings', to_jsonb(f.codes))
    FROM runs r CROSS JOIN LATERAL (
        SELECT coalesce(array_agg(found ->> 'severity'), '{}') AS severities,
               coalesce(array_agg(found ->> 'code') FILTER (WHERE found ->> 'severity' <> 'note'), '{}') AS codes
        FROM jsonb_array_elements(r.detail -> 'findings') found) f
    ORDER BY r.created_at, r.id;
INSERT INTO run_events (run_id, at, kind, details)
    SELECT id, stale_at, 'stale', jsonb_build_object('reason', coalesce(stale_reason, '')) FROM runs WHERE stale_at IS NOT NULL
    ORDER BY stale_at, id;
INSERT INTO run_events (run_id, at, kind, account_id, user_id, details)
    SELECT id, reviewed_at, 'reviewed', reviewed_by, reviewed_by, jsonb_build_object(
        'decision', CASE status WHEN 'verified' THEN 'accept' ELSE 'reject' END, 'verdict', status, 'reason', coalesce(review_reason, ''))
    FROM runs WHERE reviewed_at IS NOT NULL AND status <> 'needs_review' ORDER BY reviewed_at, id;
