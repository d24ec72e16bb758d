CREATE TABLE reports (
    id uuid PRIMARY KEY,
    account_id uuid NOT NULL REFERENCES accounts (id),
    model_slug text REFERENCES models (slug),
    model_name text NOT NULL CONSTRAINT reports_model_length CHECK (char_length(model_name) BETWEEN 1 AND 200),
    publisher text,
    hardware_slug text REFERENCES hardware_models (slug),
    hardware_name text NOT NULL CONSTRAINT reports_hardware_length CHECK (char_length(hardware_name) BETWEEN 1 AND 200),
    gpu_count integer NOT NULL CONSTRAINT reports_gpu_count_range CHECK (gpu_count BETWEEN 1 AND 1024),
    engine_name text NOT NULL,
    engine_version text,
    quantization text NOT NULL,
    kv_cache_dtype text,
    context_tokens integer NOT NULL CONSTRAINT reports_context_range CHECK (context_tokens >= 0),
    concurrency integer NOT NULL CONSTRAINT reports_concurrency_range CHECK (concurrency BETWEEN 1 AND 4096),
    rate text NOT NULL CONSTRAINT reports_rate_known CHECK (rate IN ('total', 'per_request')),
    tokens_per_second double precision NOT NULL CONSTRAINT reports_tokens_per_second_positive CHECK (tokens_per_second > 0),
    ttft_ms double precision CONSTRAINT reports_ttft_positive CHECK (ttft_ms > 0),
    total_ceiling_tokens_per_second double precision,
    is_above_ceiling boolean NOT NULL,
    source_url text,
    notes text CONSTRAINT reports_notes_length CHECK (char_length(notes) <= 2000),
    created_at timestamptz NOT NULL
);
COMMENT ON TABLE reports IS 'Speeds that people typed in. Never counted with measured runs. Business time.';
COMMENT ON COLUMN reports.rate IS 'What tokens_per_second is: of all requests together, or of one.';
COMMENT ON COLUMN reports.total_ceiling_tokens_per_second IS 'What the hardware can do at most without speculation, all requests together; null where the catalog does not know.';
CREATE INDEX reports_account ON reports (account_id, id DESC);
CREATE INDEX reports_model_slug ON reports (model_slug);
CREATE INDEX reports_hardware_slug ON reports (hardware_slug);
CREATE INDEX reports_model ON reports (coalesce(model_slug, model_name), id DESC);
CREATE INDEX reports_hardware ON reports (coalesce(hardware_slug, hardware_name), id DESC);
CREATE INDEX reports_publisher ON reports (publisher, id DESC);
