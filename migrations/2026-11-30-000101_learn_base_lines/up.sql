ALTER TABLE run_standings ADD COLUMN base_line jsonb NOT NULL DEFAULT '{}';
COMMENT ON COLUMN run_standings.base_line IS 'What was unknown of the machine at the run and was first heard of later, by who said it: a change of it makes the run stale too.';
COMMENT ON COLUMN run_standings.engine_version_seen IS 'What the machine''s engine or a later document said first, where the run names no version.';

ALTER TABLE run_events DROP CONSTRAINT run_events_kind_known;
ALTER TABLE run_events ADD CONSTRAINT run_events_kind_known CHECK (kind IN (
    'uploaded', 'verdict', 'verdict_recomputed', 'reviewed', 'reopened', 'answered', 'remeasured', 'disputed', 'dispute_ended',
    'sent_to_review', 'stale', 'base_line'));
