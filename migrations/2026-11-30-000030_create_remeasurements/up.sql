CREATE TABLE remeasurements (
    id uuid PRIMARY KEY,
    machine_id uuid NOT NULL REFERENCES machines (id),
    run_id uuid NOT NULL REFERENCES runs (id),
    reason text NOT NULL CONSTRAINT remeasurements_reason_known CHECK (reason IN ('requested', 'random', 'second_try')),
    status text NOT NULL DEFAULT 'queued' CONSTRAINT remeasurements_status_known
        CHECK (status IN ('queued', 'running', 'agreed', 'disagreed', 'failed', 'interrupted')),
    -- How often a worker has begun it: the cells are drawn anew each time.
    attempts integer NOT NULL DEFAULT 0,
    plan jsonb NOT NULL DEFAULT '[]',
    samples jsonb NOT NULL DEFAULT '[]',
    answers jsonb,
    detail text,
    created_at timestamptz NOT NULL,
    started_at timestamptz,
    finished_at timestamptz,
    CONSTRAINT remeasurements_over_or_not CHECK ((status IN ('queued', 'running')) = (finished_at IS NULL))
);
COMMENT ON TABLE remeasurements IS 'Few cells of a run measured again by the server itself, on the machine''s registered engine. Business time.';
COMMENT ON COLUMN remeasurements.plan IS 'The drawn cells; shown to nobody before they are measured. Prompts are drawn while measuring and kept nowhere.';
CREATE UNIQUE INDEX remeasurements_one_open ON remeasurements (machine_id) WHERE status IN ('queued', 'running');
CREATE INDEX remeasurements_machine ON remeasurements (machine_id, id DESC);
CREATE INDEX remeasurements_run ON remeasurements (run_id);

CREATE TABLE remeasure_schedules (
    machine_id uuid PRIMARY KEY REFERENCES machines (id),
    due_at timestamptz NOT NULL,
    reason text NOT NULL CONSTRAINT remeasure_schedules_reason_known CHECK (reason IN ('random', 'second_try')),
    failures integer NOT NULL DEFAULT 0 CONSTRAINT remeasure_schedules_failures_count CHECK (failures >= 0)
);
COMMENT ON TABLE remeasure_schedules IS 'When a machine is next re-measured without being asked: a random instant while it is listed, or what a failed second try waits for. Business time; shown to nobody.';
COMMENT ON COLUMN remeasure_schedules.failures IS 'Tries in a row in which the engine gave too little; each doubles the wait.';
CREATE INDEX remeasure_schedules_due ON remeasure_schedules (due_at);

CREATE TABLE run_standings (
    run_id uuid PRIMARY KEY REFERENCES runs (id),
    remeasured_at timestamptz,
    disputed_at timestamptz,
    stale_until timestamptz,
    engine_version_seen text,
    remeasurements jsonb NOT NULL DEFAULT '[]'
);
COMMENT ON TABLE run_standings IS 'What became of a run after its verdict; no row: nothing yet. Business time.';
COMMENT ON COLUMN run_standings.remeasured_at IS 'When a re-measurement last agreed with it.';
COMMENT ON COLUMN run_standings.disputed_at IS 'When a re-measurement disagreed with it; null when none did or a later one agreed. Such a run backs nothing.';
COMMENT ON COLUMN run_standings.stale_until IS 'Until then a stale run still backs a listing; null for a stale run: not at all.';
COMMENT ON COLUMN run_standings.engine_version_seen IS 'What the machine''s engine said when it was first asked after the run, where the document names no version.';
COMMENT ON COLUMN run_standings.remeasurements IS 'The last ten outcomes with their samples, newest first, as the run shows them.';
