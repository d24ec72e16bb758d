DROP INDEX runs_document;
DROP INDEX runs_rules_version;
DROP TABLE reverify_passes;
DELETE FROM run_marks WHERE kind IN ('cell_wall', 'close_cell');
ALTER TABLE run_marks DROP CONSTRAINT run_marks_kind_known;
ALTER TABLE run_marks ADD CONSTRAINT run_marks_kind_known CHECK (kind IN ('cell', 'nonce', 'tool_run', 'device'));
COMMENT ON TABLE run_marks IS 'What tells a copied run: the tokens and seconds of each cell, the run nonce, the tool''s run id, hashed devices.';
