CREATE TABLE stripe_balance_transactions (
    id text PRIMARY KEY CONSTRAINT stripe_balance_transactions_id_length CHECK (char_length(id) BETWEEN 1 AND 255),
    kind text NOT NULL,
    source_id text,
    -- The payment of a charge, refund or dispute; the transfer of a reversal.
    parent_id text,
    -- The row of ours that the source's metadata name.
    row_id text,
    currency text NOT NULL,
    amount_minor_units bigint NOT NULL,
    fee_minor_units bigint NOT NULL,
    net_minor_units bigint NOT NULL,
    -- The same in micro-dollars; null in another currency.
    amount_micros bigint,
    fee_micros bigint,
    available_at timestamptz NOT NULL,
    created_at timestamptz NOT NULL,
    CONSTRAINT stripe_balance_transactions_net CHECK (net_minor_units = amount_minor_units - fee_minor_units),
    CONSTRAINT stripe_balance_transactions_micros
        CHECK ((currency = 'usd') = (amount_micros IS NOT NULL) AND (currency = 'usd') = (fee_micros IS NOT NULL))
);
COMMENT ON TABLE stripe_balance_transactions IS
    'Every movement of the money that Stripe has for the platform, as Stripe lists it. Copies: never changed, and read again from Stripe if lost. Stripe''s time.';
CREATE INDEX stripe_balance_transactions_created ON stripe_balance_transactions (created_at);

CREATE TABLE reconciliations (
    is_latest boolean PRIMARY KEY DEFAULT true CONSTRAINT reconciliations_one CHECK (is_latest),
    -- Who is at it has it until then; nobody in the past.
    leased_until timestamptz NOT NULL DEFAULT '-infinity',
    -- Up to when Stripe's list was read, by our clock; null before the first time.
    stripe_read_through timestamptz,
    started_at timestamptz,
    finished_at timestamptz,
    result jsonb,
    CONSTRAINT reconciliations_finished CHECK ((started_at IS NULL) = (finished_at IS NULL) AND (started_at IS NULL) = (result IS NULL))
);
COMMENT ON TABLE reconciliations IS 'One row: the latest reconciliation, and how far Stripe''s list has been read. Wall time.';
INSERT INTO reconciliations DEFAULT VALUES;

CREATE TABLE reconciliation_findings (
    kind text NOT NULL,
    subject text NOT NULL,
    expected text NOT NULL,
    found text NOT NULL,
    first_seen_at timestamptz NOT NULL,
    last_seen_at timestamptz NOT NULL,
    PRIMARY KEY (kind, subject)
);
COMMENT ON TABLE reconciliation_findings IS 'What the latest reconciliation found, and since when. A row goes when a reconciliation finds it no more. Wall time.';

-- The text of an id, as the program writes it (a TypeID): for findings, and to look for ids that stand in texts.
CREATE FUNCTION id_text(prefix text, id uuid) RETURNS text LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT prefix || '_' || string_agg(substr('0123456789abcdefghjkmnpqrstvwxyz', 1 + substring(b.bits, 1 + 5 * i, 5)::bit(5)::integer, 1), '' ORDER BY i)
    FROM (SELECT '00' || ('x' || replace(id::text, '-', ''))::bit(128)::text AS bits) b, generate_series(0, 25) i
$$;
