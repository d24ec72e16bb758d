CREATE TABLE payment_methods (
    id text PRIMARY KEY CONSTRAINT payment_methods_id_form CHECK (id ~ '^pm_[A-Za-z0-9_]+$' AND char_length(id) <= 255),
    account_id uuid NOT NULL REFERENCES accounts (id),
    brand text NOT NULL,
    -- Null for what is no card.
    last4 text CONSTRAINT payment_methods_last4_form CHECK (last4 ~ '^[0-9]{4}$'),
    expires_month smallint CONSTRAINT payment_methods_month CHECK (expires_month BETWEEN 1 AND 12),
    expires_year smallint,
    is_default boolean NOT NULL DEFAULT false,
    observed_at timestamptz NOT NULL,
    created_at timestamptz NOT NULL,
    -- Since when it is charged no more, whatever Stripe says later.
    removed_at timestamptz,
    CONSTRAINT payment_methods_default_is_there CHECK (NOT is_default OR removed_at IS NULL)
);
COMMENT ON TABLE payment_methods IS 'Cards that accounts have saved at Stripe, as Stripe last showed them. No numbers. Wall time.';
CREATE INDEX payment_methods_account ON payment_methods (account_id, created_at DESC, id DESC);
CREATE UNIQUE INDEX payment_methods_one_default ON payment_methods (account_id) WHERE is_default;

CREATE TABLE card_setups (
    id uuid PRIMARY KEY,
    account_id uuid NOT NULL REFERENCES accounts (id),
    -- What the request named; null where a browser gives it to Stripe.
    payment_method text,
    return_url text,
    status text NOT NULL CONSTRAINT card_setups_status_known
        CHECK (status IN ('pending', 'requires_payment_method', 'requires_action', 'processing', 'canceled', 'succeeded')),
    setup_intent_id text CONSTRAINT card_setups_setup_intent_taken UNIQUE,
    checkout_session_id text CONSTRAINT card_setups_checkout_session_taken UNIQUE,
    -- The payment method that came of it.
    saved_payment_method text,
    failure_code text,
    observed_at timestamptz,
    created_at timestamptz NOT NULL
);
COMMENT ON TABLE card_setups IS 'Requests to save a card; the row is committed before Stripe hears of it. Wall time.';
CREATE INDEX card_setups_account ON card_setups (account_id, id DESC);

ALTER TABLE top_ups
    -- The Customer that is charged, as it was when the top-up began: every repeat of the request says the same.
    ADD COLUMN customer_id text,
    -- What was charged, for the receipt.
    ADD COLUMN card_brand text,
    ADD COLUMN card_last4 text,
    DROP CONSTRAINT top_ups_means_known,
    ADD CONSTRAINT top_ups_means_known CHECK (means IN ('client', 'payment_method', 'checkout', 'automatic')),
    DROP CONSTRAINT top_ups_paid_method,
    ADD CONSTRAINT top_ups_paid_method CHECK ((means IN ('payment_method', 'automatic')) = (payment_method IS NOT NULL)),
    ADD CONSTRAINT top_ups_automatic_customer CHECK (means <> 'automatic' OR customer_id IS NOT NULL);
-- While nobody knows what becomes of one, no other is begun.
CREATE UNIQUE INDEX top_ups_one_automatic ON top_ups (account_id) WHERE means = 'automatic' AND status IN ('pending', 'processing');
CREATE INDEX top_ups_automatic ON top_ups (account_id, created_at) WHERE means = 'automatic';

CREATE TABLE automatic_top_ups (
    account_id uuid PRIMARY KEY REFERENCES accounts (id),
    threshold_micros bigint NOT NULL CONSTRAINT automatic_top_ups_threshold CHECK (threshold_micros > 0),
    amount_micros bigint NOT NULL CONSTRAINT automatic_top_ups_amount_whole_cents CHECK (amount_micros > 0 AND amount_micros % 10000 = 0),
    -- The most that one UTC month brings in.
    monthly_max_micros bigint CONSTRAINT automatic_top_ups_monthly_max CHECK (monthly_max_micros >= amount_micros),
    payment_method_id text NOT NULL REFERENCES payment_methods (id),
    state text NOT NULL CONSTRAINT automatic_top_ups_state_known CHECK (state IN ('on', 'paused', 'off')),
    paused_reason text CONSTRAINT automatic_top_ups_reason_known
        CHECK (paused_reason IN ('payments_failed', 'authentication_required', 'payment_method_removed')),
    failure_count integer NOT NULL DEFAULT 0 CONSTRAINT automatic_top_ups_failures CHECK (failure_count >= 0),
    last_failure_code text,
    last_failure_at timestamptz,
    last_failure_top_up_id uuid REFERENCES top_ups (id),
    last_top_up_id uuid REFERENCES top_ups (id),
    last_try_at timestamptz,
    next_try_at timestamptz NOT NULL,
    -- The balance may be below the threshold: set with the posting that takes it there, taken back by who has looked.
    is_low boolean NOT NULL DEFAULT true,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    CONSTRAINT automatic_top_ups_paused_reason CHECK ((state = 'paused') = (paused_reason IS NOT NULL)),
    CONSTRAINT automatic_top_ups_one_try_an_hour CHECK (next_try_at >= last_try_at + interval '1 hour')
);
COMMENT ON TABLE automatic_top_ups IS 'What accounts have said about topping up by itself, and how it went; the row stays when it is turned off. Wall time.';
CREATE INDEX automatic_top_ups_due ON automatic_top_ups (next_try_at) WHERE state = 'on' AND is_low;
CREATE INDEX automatic_top_ups_payment_method ON automatic_top_ups (payment_method_id);
CREATE INDEX automatic_top_ups_last_failure ON automatic_top_ups (last_failure_top_up_id);
CREATE INDEX automatic_top_ups_last_top_up ON automatic_top_ups (last_top_up_id);

-- Also where the mark stands already: the lock makes whoever is about to take it back look again.
CREATE FUNCTION automatic_top_ups_mark_low() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE automatic_top_ups SET is_low = true
        WHERE account_id = NEW.account_id AND state = 'on' AND threshold_micros > NEW.balance_micros;
    RETURN NULL;
END $$;
CREATE TRIGGER ledger_accounts_mark_low AFTER UPDATE OF balance_micros ON ledger_accounts FOR EACH ROW
    WHEN (NEW.kind = 'available' AND NEW.balance_micros < OLD.balance_micros) EXECUTE FUNCTION automatic_top_ups_mark_low();
