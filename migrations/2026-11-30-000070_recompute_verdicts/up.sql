ALTER TABLE run_marks DROP CONSTRAINT run_marks_kind_known;
ALTER TABLE run_marks ADD CONSTRAINT run_marks_kind_known CHECK (kind IN ('cell', 'cell_wall', 'close_cell', 'nonce', 'tool_run', 'device'));
COMMENT ON TABLE run_marks IS 'What tells a copied run: the tokens and seconds of each cell, exactly and nearly, the run nonce, the tool''s run id, hashed devices.';

CREATE TABLE reverify_passes (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    rules_version text NOT NULL,
    runs_total bigint NOT NULL,
    runs_done bigint NOT NULL DEFAULT 0,
    runs_changed bigint NOT NULL DEFAULT 0,
    runs_unreadable bigint NOT NULL DEFAULT 0,
    last_run_id uuid,
    begun_at timestamptz NOT NULL,
    finished_at timestamptz
);
COMMENT ON TABLE reverify_passes IS 'Recomputations of all verdicts by one version of the rules, and how far each came. Wall time.';
COMMENT ON COLUMN reverify_passes.runs_changed IS 'Runs whose verdict or evidence level became another.';
COMMENT ON COLUMN reverify_passes.runs_unreadable IS 'Runs that these rules could not judge; they keep the verdict they had.';
COMMENT ON COLUMN reverify_passes.last_run_id IS 'Runs are taken in the order of their ids; this one and all before it are done.';
CREATE UNIQUE INDEX reverify_passes_one_open ON reverify_passes ((finished_at IS NULL)) WHERE finished_at IS NULL;
CREATE INDEX runs_rules_version ON runs (rules_version);
CREATE INDEX runs_document ON runs (document_sha256);
