DROP TABLE tool_uploads;
-- Without their kind they would be API keys.
DELETE FROM api_keys WHERE kind = 'upload';
ALTER TABLE api_keys
    DROP CONSTRAINT api_keys_upload_scopes,
    DROP CONSTRAINT api_keys_machine_of_upload,
    DROP COLUMN machine_id,
    DROP COLUMN kind;
