CREATE TABLE challenges (
    id uuid PRIMARY KEY,
    machine_id uuid NOT NULL REFERENCES machines (id),
    account_id uuid NOT NULL REFERENCES accounts (id),
    spec jsonb NOT NULL,
    issued_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    used_at timestamptz,
    model text,
    CONSTRAINT challenges_forward CHECK (expires_at > issued_at)
);
COMMENT ON COLUMN challenges.model IS 'The model the host named, which an answer is of; null: whatever the engine serves.';
COMMENT ON TABLE challenges IS 'What a machine was asked to measure; used once, by one upload. Business time.';
CREATE INDEX challenges_machine ON challenges (machine_id, issued_at DESC);
CREATE INDEX challenges_account ON challenges (account_id);

CREATE TABLE runs (
    id uuid PRIMARY KEY,
    account_id uuid NOT NULL REFERENCES accounts (id),
    machine_id uuid REFERENCES machines (id),
    challenge_id uuid REFERENCES challenges (id),
    status text NOT NULL CONSTRAINT runs_status_known CHECK (status IN ('verified', 'needs_review', 'rejected')),
    evidence_level text NOT NULL CONSTRAINT runs_evidence_level_known
        CHECK (evidence_level IN ('reported', 'document', 'challenged', 'remeasured')),
    visibility text NOT NULL CONSTRAINT runs_visibility_known CHECK (visibility IN ('public', 'unlisted')),
    model_slug text REFERENCES models (slug),
    model_name text NOT NULL,
    publisher text,
    quantization text,
    hardware_slug text REFERENCES hardware_models (slug),
    gpu_count integer,
    engine_name text,
    title text NOT NULL,
    summary text NOT NULL,
    -- Everything a page or the API shows of the run, as the verdict left it.
    detail jsonb NOT NULL,
    rules_version text NOT NULL,
    document_sha256 text NOT NULL,
    -- The best figures, for sorting lists; null when not measured.
    decode_single_tokens_per_second double precision,
    decode_peak_tokens_per_second double precision,
    prefill_peak_tokens_per_second double precision,
    -- Account, machine, challenge, claim and bytes together: the same upload again gives the same run.
    upload_key text NOT NULL CONSTRAINT runs_upload_key UNIQUE,
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    stale_at timestamptz,
    stale_reason text,
    reviewed_at timestamptz,
    reviewed_by uuid REFERENCES accounts (id),
    review_reason text
);
COMMENT ON TABLE runs IS 'One uploaded result document and the verdict on it. Business time.';
CREATE INDEX runs_newest ON runs (created_at DESC, id DESC) WHERE visibility = 'public';
CREATE INDEX runs_model ON runs (model_slug, created_at DESC, id DESC);
CREATE INDEX runs_hardware ON runs (hardware_slug, created_at DESC, id DESC);
CREATE INDEX runs_account ON runs (account_id, created_at DESC, id DESC);
CREATE INDEX runs_machine ON runs (machine_id, created_at DESC) WHERE machine_id IS NOT NULL;
CREATE UNIQUE INDEX runs_challenge ON runs (challenge_id) WHERE challenge_id IS NOT NULL;
CREATE INDEX runs_reviewed_by ON runs (reviewed_by) WHERE reviewed_by IS NOT NULL;
CREATE INDEX runs_to_review ON runs (created_at) WHERE status = 'needs_review';

CREATE TABLE run_documents (
    run_id uuid PRIMARY KEY REFERENCES runs (id),
    -- The redacted copy in canonical bytes, gzipped: what `document_sha256` and the verdict stand on.
    redacted_gzip bytea NOT NULL,
    -- What came in, gzipped: for its owner and operators only.
    original_gzip bytea NOT NULL,
    original_sha256 text NOT NULL
);
COMMENT ON TABLE run_documents IS 'The bytes of each run, apart from the rows that lists read.';
CREATE INDEX run_documents_original ON run_documents (original_sha256);

CREATE TABLE run_cells (
    run_id uuid NOT NULL REFERENCES runs (id),
    context_tokens integer NOT NULL,
    concurrency integer NOT NULL,
    status text NOT NULL,
    total_tokens_per_second double precision,
    per_request_tokens_per_second double precision,
    ttft_ms double precision,
    itl_ms double precision,
    -- TTFT of a prompt never seen before, from the prefill rows.
    cold_ttft_ms double precision,
    PRIMARY KEY (run_id, context_tokens, concurrency)
);
COMMENT ON TABLE run_cells IS 'Decode cells of each run, for searching by workload.';

CREATE TABLE run_marks (
    run_id uuid NOT NULL REFERENCES runs (id),
    kind text NOT NULL CONSTRAINT run_marks_kind_known CHECK (kind IN ('cell', 'nonce', 'tool_run', 'device')),
    value text NOT NULL,
    PRIMARY KEY (run_id, kind, value)
);
COMMENT ON TABLE run_marks IS 'What tells a copied run: the tokens and seconds of each cell, the run nonce, the tool''s run id, hashed devices.';
CREATE INDEX run_marks_value ON run_marks (kind, value);
