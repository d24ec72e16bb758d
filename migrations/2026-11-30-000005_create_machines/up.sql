CREATE TABLE machines (
    id uuid PRIMARY KEY,
    account_id uuid NOT NULL REFERENCES accounts (id),
    name text NOT NULL CONSTRAINT machines_name_length CHECK (char_length(name) BETWEEN 1 AND 80),
    hardware_slug text NOT NULL REFERENCES hardware_models (slug),
    gpu_count integer NOT NULL CONSTRAINT machines_gpu_count_range CHECK (gpu_count BETWEEN 1 AND 64),
    vram_gib double precision CONSTRAINT machines_vram_positive CHECK (vram_gib > 0),
    kind text NOT NULL CONSTRAINT machines_kind_known
        CHECK (kind IN ('discrete_gpu', 'integrated_gpu', 'unified_memory', 'cpu', 'accelerator')),
    cpu text,
    ram_gib double precision CONSTRAINT machines_ram_positive CHECK (ram_gib > 0),
    os text,
    driver text,
    power_limit_w double precision CONSTRAINT machines_power_positive CHECK (power_limit_w > 0),
    region text CONSTRAINT machines_region_form CHECK (region ~ '^[a-z]{2}(-[a-z0-9]{1,8})?$'),
    endpoint_url text,
    endpoint_key_sealed bytea,
    endpoint_changed_at timestamptz,
    is_simulated boolean NOT NULL DEFAULT false,
    hardware_changed_at timestamptz,
    last_seen_at timestamptz,
    probe_failed_at timestamptz,
    start_failures integer NOT NULL DEFAULT 0 CONSTRAINT machines_start_failures_count CHECK (start_failures >= 0),
    deleted_at timestamptz,
    created_at timestamptz NOT NULL,
    CONSTRAINT machines_key_has_endpoint CHECK (endpoint_url IS NOT NULL OR endpoint_key_sealed IS NULL)
);
COMMENT ON TABLE machines IS 'Physical computers that hosts register. A row is never deleted: rentals and runs keep pointing at it. Business time.';
COMMENT ON COLUMN machines.vram_gib IS 'Of one GPU: the nominal size of the hardware model, or the size fitted where the model has none of its own.';
COMMENT ON COLUMN machines.endpoint_key_sealed IS 'The engine''s API key, encrypted for this row (base::seal).';
COMMENT ON COLUMN machines.endpoint_changed_at IS 'When a registered engine address was last replaced or taken away; null while it is the first.';
COMMENT ON COLUMN machines.hardware_changed_at IS 'When the stated hardware last changed; null while it is as registered.';
COMMENT ON COLUMN machines.last_seen_at IS 'The last good sign of life.';
COMMENT ON COLUMN machines.probe_failed_at IS 'The first failed probe since then; null while the machine answers or nobody asks.';
CREATE INDEX machines_account ON machines (account_id, id DESC);
CREATE INDEX machines_hardware ON machines (hardware_slug);

CREATE TABLE machine_watches (
    machine_id uuid NOT NULL REFERENCES machines (id),
    reason text NOT NULL,
    PRIMARY KEY (machine_id, reason)
);
COMMENT ON TABLE machine_watches IS 'Why signs of life of a machine are wanted: a published listing, a rental. A machine with a row here is in use and cannot be deleted.';
