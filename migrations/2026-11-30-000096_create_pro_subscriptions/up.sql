CREATE TABLE pro_subscriptions (
    id uuid PRIMARY KEY,
    account_id uuid NOT NULL REFERENCES accounts (id),
    -- Of the request's Idempotency-Key: a repeat finds its subscription even when the first answer was never given. Null once the key is free again.
    request_key text CONSTRAINT pro_subscriptions_request_key_taken UNIQUE,
    plan text NOT NULL CONSTRAINT pro_subscriptions_plan_known CHECK (plan IN ('monthly', 'yearly')),
    seats integer NOT NULL CONSTRAINT pro_subscriptions_seats_positive CHECK (seats > 0),
    means text NOT NULL CONSTRAINT pro_subscriptions_means_known CHECK (means IN ('client', 'payment_method', 'checkout', 'play_money')),
    payment_method text,
    return_url text,
    status text NOT NULL CONSTRAINT pro_subscriptions_status_known CHECK (status IN ('pending', 'failed', 'incomplete', 'trialing', 'active',
        'past_due', 'unpaid', 'paused', 'incomplete_expired', 'canceled')),
    -- Whose it is at Stripe; null in the sandbox.
    customer_id text,
    subscription_id text CONSTRAINT pro_subscriptions_subscription_taken UNIQUE,
    item_id text,
    checkout_session_id text CONSTRAINT pro_subscriptions_checkout_session_taken UNIQUE,
    -- Whether it ends with its period.
    is_ending boolean NOT NULL DEFAULT false,
    period_ends_at timestamptz,
    -- Since when an invoice is open that should have been paid.
    past_due_since timestamptz,
    -- The end of the last period that was paid.
    paid_until timestamptz,
    -- What follows from all of this: until when it gives Pro, and whether it goes on by itself.
    pro_until timestamptz,
    renews boolean NOT NULL DEFAULT false CONSTRAINT pro_subscriptions_renews_pro CHECK (NOT renews OR pro_until IS NOT NULL),
    failure_code text,
    -- Why an operator has to look at it.
    alarm text,
    -- Counts the changes asked for: each has an idempotency key of its own.
    change_count integer NOT NULL DEFAULT 0,
    -- When the question was sent whose answer this row shows; an answer to an earlier one changes nothing.
    observed_at timestamptz,
    -- When Stripe is asked next; null when nothing more can change.
    ask_at timestamptz,
    ask_count integer NOT NULL DEFAULT 0,
    created_at timestamptz NOT NULL,
    ended_at timestamptz,
    CONSTRAINT pro_subscriptions_paid_method CHECK ((means = 'payment_method') = (payment_method IS NOT NULL)),
    CONSTRAINT pro_subscriptions_checkout_returns CHECK ((means = 'checkout') = (return_url IS NOT NULL)),
    CONSTRAINT pro_subscriptions_customer CHECK ((means = 'play_money') = (customer_id IS NULL)),
    CONSTRAINT pro_subscriptions_over_ended CHECK ((status IN ('failed', 'incomplete_expired', 'canceled')) = (ended_at IS NOT NULL))
);
COMMENT ON TABLE pro_subscriptions IS 'What an account has asked for to have Pro, and what Stripe says of it. Wall time; in the sandbox business time.';
CREATE UNIQUE INDEX pro_subscriptions_one_open ON pro_subscriptions (account_id) WHERE status NOT IN ('failed', 'incomplete_expired', 'canceled');
CREATE INDEX pro_subscriptions_account ON pro_subscriptions (account_id, id DESC);
CREATE INDEX pro_subscriptions_ask ON pro_subscriptions (ask_at) WHERE ask_at IS NOT NULL;

CREATE TABLE pro_invoices (
    invoice_id text PRIMARY KEY CONSTRAINT pro_invoices_id_length CHECK (char_length(invoice_id) BETWEEN 1 AND 255),
    pro_subscription_id uuid NOT NULL REFERENCES pro_subscriptions (id),
    number text,
    reason text,
    paid_micros bigint NOT NULL CONSTRAINT pro_invoices_paid_positive CHECK (paid_micros >= 0),
    tax_micros bigint NOT NULL CONSTRAINT pro_invoices_tax_positive CHECK (tax_micros >= 0),
    -- Lines as Stripe gives them: amount, whether it is within the price, the rate's id, the reason.
    taxes jsonb NOT NULL,
    -- Null for an invoice of nothing.
    transfer_id uuid,
    created_at timestamptz NOT NULL,
    booked_at timestamptz NOT NULL,
    CONSTRAINT pro_invoices_booked CHECK ((paid_micros > 0) = (transfer_id IS NOT NULL))
);
COMMENT ON TABLE pro_invoices IS 'Paid invoices of Pro, each booked once. Wall time.';
CREATE INDEX pro_invoices_subscription ON pro_invoices (pro_subscription_id);

ALTER TABLE entitlements RENAME COLUMN pro_until TO granted_until;
ALTER TABLE entitlements ALTER COLUMN granted_until DROP NOT NULL;
ALTER TABLE entitlements ADD COLUMN sold_until timestamptz;
ALTER TABLE entitlements ADD COLUMN renews boolean NOT NULL DEFAULT false
    CONSTRAINT entitlements_renews_sold CHECK (NOT renews OR sold_until IS NOT NULL);
ALTER TABLE entitlements ADD COLUMN seats integer CONSTRAINT entitlements_seats_positive CHECK (seats > 0);
COMMENT ON TABLE entitlements IS 'Pro as a fact, whoever sold it: an account has Pro before granted_until or sold_until, or while what was sold renews itself (business time).';
