ALTER TABLE api_keys
    ADD COLUMN kind text NOT NULL DEFAULT 'api' CONSTRAINT api_keys_kind_known CHECK (kind IN ('api', 'upload')),
    ADD COLUMN machine_id uuid REFERENCES machines (id),
    ADD CONSTRAINT api_keys_machine_of_upload CHECK (machine_id IS NULL OR kind = 'upload'),
    ADD CONSTRAINT api_keys_upload_scopes CHECK (kind <> 'upload' OR scopes = ARRAY['runs:write']);
COMMENT ON COLUMN api_keys.kind IS 'api: an API key. upload: a token of the benchmark tool, which opens its two routes and no other.';
COMMENT ON COLUMN api_keys.machine_id IS 'The machine that an upload token binds its runs to; null: none.';
CREATE INDEX api_keys_machine ON api_keys (machine_id) WHERE machine_id IS NOT NULL;

CREATE TABLE tool_uploads (
    tool_id text PRIMARY KEY CONSTRAINT tool_uploads_id_form CHECK (tool_id ~ '^(run|body):[0-9a-f]{64}$'),
    account_id uuid NOT NULL REFERENCES accounts (id),
    content_sha256 text NOT NULL,
    -- Written before the run, in its transaction: who comes second waits here.
    upload_key text NOT NULL CONSTRAINT tool_uploads_run REFERENCES runs (upload_key) DEFERRABLE INITIALLY DEFERRED
);
COMMENT ON TABLE tool_uploads IS 'Uploads of the benchmark tool: one id, one account, one content, one run. The same upload again gives the same run.';
COMMENT ON COLUMN tool_uploads.tool_id IS 'Hash of the run_id in a wrapped document, or of a plain document''s content.';
COMMENT ON COLUMN tool_uploads.content_sha256 IS 'Of the document as it came, in canonical spelling.';
CREATE INDEX tool_uploads_account ON tool_uploads (account_id);
CREATE INDEX tool_uploads_upload_key ON tool_uploads (upload_key);
