-- Events are append-only: a store that has the new kind cannot go back.
ALTER TABLE run_events DROP CONSTRAINT run_events_kind_known;
ALTER TABLE run_events ADD CONSTRAINT run_events_kind_known CHECK (kind IN (
    'uploaded', 'verdict', 'verdict_recomputed', 'reviewed', 'reopened', 'answered', 'remeasured', 'disputed', 'dispute_ended',
    'sent_to_review', 'stale'));

COMMENT ON COLUMN run_standings.engine_version_seen IS 'What the machine''s engine said when it was first asked after the run, where the document names no version.';
ALTER TABLE run_standings DROP COLUMN base_line;
