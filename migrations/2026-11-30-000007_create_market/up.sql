CREATE TABLE listings (
    id uuid PRIMARY KEY,
    machine_id uuid NOT NULL REFERENCES machines (id),
    account_id uuid NOT NULL REFERENCES accounts (id),
    state text NOT NULL CONSTRAINT listings_state_known CHECK (state IN ('draft', 'published', 'paused', 'off_market')),
    off_market_reason text,
    price_per_hour_micros bigint NOT NULL CONSTRAINT listings_price_positive CHECK (price_per_hour_micros > 0),
    min_hours integer NOT NULL CONSTRAINT listings_min_hours_range CHECK (min_hours BETWEEN 0 AND 8760),
    max_hours integer CONSTRAINT listings_max_hours_range CHECK (max_hours BETWEEN 1 AND 8760),
    available_until timestamptz,
    description text NOT NULL DEFAULT '' CONSTRAINT listings_description_length CHECK (char_length(description) <= 2000),
    run_id uuid REFERENCES runs (id),
    valid_until timestamptz,
    is_taken boolean NOT NULL DEFAULT false,
    is_silent boolean NOT NULL DEFAULT false,
    -- Copies for the search, written whenever the listing is put on the market or its machine changes.
    hardware_slug text NOT NULL,
    gpu_count integer NOT NULL,
    vram_gib double precision,
    region text,
    model text,
    quantization text,
    published_at timestamptz,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    closed_at timestamptz,
    version integer NOT NULL DEFAULT 1,
    CONSTRAINT listings_hours_in_order CHECK (max_hours >= min_hours),
    CONSTRAINT listings_off_market_has_reason CHECK ((state = 'off_market') = (off_market_reason IS NOT NULL)),
    CONSTRAINT listings_published_is_backed CHECK (state <> 'published' OR num_nulls(run_id, valid_until, model, published_at) = 0),
    CONSTRAINT listings_closed_is_off CHECK (closed_at IS NULL OR state = 'off_market')
);
COMMENT ON TABLE listings IS 'Offers of machines at a price. Published only while a run backs them. Business time.';
COMMENT ON COLUMN listings.run_id IS 'The newest run that backs the badge.';
COMMENT ON COLUMN listings.valid_until IS 'When the listing leaves the market by itself: the run''s expiry or available_until, whichever comes first.';
COMMENT ON COLUMN listings.is_taken IS 'Whether a rental has the machine, now or reserved; kept by rentals.';
COMMENT ON COLUMN listings.is_silent IS 'Whether its machine has not answered for so long that a rental of it would end; kept by a sweep, for the search.';
COMMENT ON COLUMN listings.model IS 'Of the backing run: the slug of the catalog''s model, or the name it was measured under.';
COMMENT ON COLUMN listings.closed_at IS 'The machine was deleted: the row stays for the rentals that point at it.';
CREATE UNIQUE INDEX listings_one_open ON listings (machine_id) WHERE closed_at IS NULL;
CREATE INDEX listings_machine ON listings (machine_id);
CREATE INDEX listings_account ON listings (account_id, id DESC);
CREATE INDEX listings_run ON listings (run_id);
-- The search: in the order of price, and for the filters that leave a small part of the market.
CREATE INDEX listings_by_price ON listings (price_per_hour_micros, id) WHERE state = 'published';
CREATE INDEX listings_by_hardware ON listings (hardware_slug, price_per_hour_micros, id) WHERE state = 'published';
CREATE INDEX listings_by_model ON listings (model, price_per_hour_micros, id) WHERE state = 'published';
CREATE INDEX listings_by_gpu_count ON listings (gpu_count, price_per_hour_micros, id) WHERE state = 'published';
CREATE INDEX listings_by_country ON listings (left(region, 2), price_per_hour_micros, id) WHERE state = 'published';
CREATE INDEX listings_due ON listings (valid_until) WHERE state = 'published';
