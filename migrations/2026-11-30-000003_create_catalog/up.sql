CREATE TABLE hardware_models (
    slug text PRIMARY KEY,
    name text NOT NULL,
    vendor text NOT NULL,
    kind text NOT NULL CONSTRAINT hardware_models_kind_known
        CHECK (kind IN ('discrete_gpu', 'integrated_gpu', 'unified_memory', 'cpu', 'accelerator')),
    architecture text NOT NULL,
    memory_gib double precision CONSTRAINT hardware_models_memory_positive CHECK (memory_gib > 0),
    bandwidth_gb_s double precision CONSTRAINT hardware_models_bandwidth_positive CHECK (bandwidth_gb_s > 0),
    unified boolean NOT NULL
);
COMMENT ON TABLE hardware_models IS
    'Mirror of data/gpus.csv for foreign keys and joins; the rows themselves are read from the program. Written at start, never deleted from.';
COMMENT ON COLUMN hardware_models.memory_gib IS 'Nominal size; null where it is whatever memory is fitted.';

CREATE TABLE models (
    slug text PRIMARY KEY,
    hf_id text NOT NULL,
    name text NOT NULL,
    publisher text NOT NULL,
    family text NOT NULL,
    kind text NOT NULL CONSTRAINT models_kind_known CHECK (kind IN ('dense', 'moe', 'hybrid')),
    total_params_b double precision NOT NULL CONSTRAINT models_total_params_positive CHECK (total_params_b > 0),
    active_params_b double precision NOT NULL CONSTRAINT models_active_params_positive CHECK (active_params_b > 0),
    max_context integer NOT NULL CONSTRAINT models_max_context_positive CHECK (max_context > 0)
);
COMMENT ON TABLE models IS
    'Mirror of data/models.csv for foreign keys and joins; the rows themselves are read from the program. Written at start, never deleted from.';
COMMENT ON COLUMN models.max_context IS 'Tokens.';
CREATE INDEX models_publisher ON models (publisher);
