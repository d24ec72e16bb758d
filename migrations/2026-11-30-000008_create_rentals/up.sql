CREATE TABLE rentals (
    id uuid PRIMARY KEY,
    renter_account_id uuid NOT NULL REFERENCES accounts (id),
    host_account_id uuid NOT NULL REFERENCES accounts (id),
    listing_id uuid NOT NULL REFERENCES listings (id),
    machine_id uuid NOT NULL REFERENCES machines (id),
    run_id uuid REFERENCES runs (id),
    status text NOT NULL CONSTRAINT rentals_status_known
        CHECK (status IN ('reserved', 'held', 'provisioning', 'active', 'stopping', 'ended', 'failed')),
    end_reason text CONSTRAINT rentals_end_reason_known CHECK (end_reason IN
        ('renter_stopped', 'host_stopped', 'deadline', 'spend_cap', 'insufficient_funds', 'host_lost', 'boot_timeout', 'operator')),
    -- The span for which the machine is taken; open at the end while the rental has no deadline.
    period tstzrange NOT NULL,
    price_per_hour_micros bigint NOT NULL CHECK (price_per_hour_micros >= 0),
    fee_basis_points smallint NOT NULL CHECK (fee_basis_points BETWEEN 0 AND 10000),
    min_hours integer NOT NULL CHECK (min_hours >= 0),
    max_hours integer CHECK (max_hours > 0),
    -- Length asked for in hours; its deadline is counted from the first billed second.
    hours integer CHECK (hours > 0),
    ends_at timestamptz,
    -- What the host said at acceptance about how long the machine is to be had; no extension goes beyond it.
    latest_end_at timestamptz,
    max_spend_micros bigint CHECK (max_spend_micros > 0),
    hold_id uuid NOT NULL,
    model text,
    created_at timestamptz NOT NULL,
    starts_at timestamptz NOT NULL,
    boot_deadline_at timestamptz NOT NULL,
    active_at timestamptz,
    paused_at timestamptz,
    stop_requested_at timestamptz,
    ended_at timestamptz,
    settled_through timestamptz,
    gross_posted_micros bigint NOT NULL DEFAULT 0 CHECK (gross_posted_micros >= 0),
    fee_posted_micros bigint NOT NULL DEFAULT 0 CHECK (fee_posted_micros >= 0),
    -- Counts the transfers of this rental, so that each has an id that a repeated step finds again.
    transfer_sequence integer NOT NULL DEFAULT 0,
    runway_warned_seconds integer,
    -- When something is next to be done for this rental, business time; null when it is over.
    next_due_at timestamptz,
    CONSTRAINT rentals_over_or_not CHECK ((status IN ('ended', 'failed')) = (ended_at IS NOT NULL)),
    CONSTRAINT rentals_end_has_reason CHECK ((ended_at IS NULL) = (end_reason IS NULL)),
    CONSTRAINT rentals_within_cap CHECK (max_spend_micros IS NULL OR gross_posted_micros <= max_spend_micros),
    CONSTRAINT rentals_machine_taken EXCLUDE USING gist (machine_id WITH =, period WITH &&) WHERE (status NOT IN ('ended', 'failed'))
);
COMMENT ON TABLE rentals IS 'A contract with frozen terms; business time. The exclusion constraint makes two rentals of a machine at one time impossible.';
CREATE INDEX rentals_renter ON rentals (renter_account_id, id DESC);
CREATE INDEX rentals_host ON rentals (host_account_id, id DESC);
CREATE INDEX rentals_listing ON rentals (listing_id);
CREATE INDEX rentals_machine ON rentals (machine_id, id DESC);
CREATE INDEX rentals_run ON rentals (run_id);
CREATE INDEX rentals_due ON rentals (next_due_at) WHERE status NOT IN ('ended', 'failed');

CREATE TABLE rental_segments (
    rental_id uuid NOT NULL REFERENCES rentals (id),
    sequence integer NOT NULL,
    started_at timestamptz NOT NULL,
    ended_at timestamptz,
    gross_posted_micros bigint NOT NULL DEFAULT 0 CHECK (gross_posted_micros >= 0),
    PRIMARY KEY (rental_id, sequence),
    CONSTRAINT rental_segments_forward CHECK (ended_at IS NULL OR ended_at >= started_at)
);
COMMENT ON TABLE rental_segments IS 'A span of billed time without a pause. The charge is taken cumulatively from its start.';
CREATE UNIQUE INDEX rental_segments_one_open ON rental_segments (rental_id) WHERE ended_at IS NULL;

CREATE TABLE rental_events (
    sequence bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    rental_id uuid NOT NULL REFERENCES rentals (id),
    kind text NOT NULL,
    detail jsonb NOT NULL DEFAULT '{}',
    at timestamptz NOT NULL
);
COMMENT ON TABLE rental_events IS 'What happened to a rental, in order, for its page and its event stream.';
CREATE INDEX rental_events_rental ON rental_events (rental_id, sequence);
