CREATE TABLE payout_accounts (
    id uuid PRIMARY KEY,
    account_id uuid NOT NULL REFERENCES accounts (id),
    -- The one that is paid to; another may follow one that is gone.
    is_current boolean NOT NULL,
    country text CONSTRAINT payout_accounts_country_form CHECK (country ~ '^[A-Z]{2}$'),
    stripe_account_id text CONSTRAINT payout_accounts_stripe_account_taken UNIQUE,
    status text NOT NULL CONSTRAINT payout_accounts_status_known CHECK (status IN ('onboarding', 'enabled', 'restricted', 'disabled')),
    disabled_reason text,
    requirements_due text[] NOT NULL DEFAULT '{}',
    payouts_enabled boolean NOT NULL DEFAULT false,
    schedule text NOT NULL DEFAULT 'manual' CONSTRAINT payout_accounts_schedule_known CHECK (schedule IN ('manual', 'weekly')),
    -- When the weekly payout is made next, business time.
    weekly_at timestamptz,
    -- Why nothing is paid out although Stripe would: the bank account sent money back. Until the host does something about it.
    paused_reason text,
    -- When the question was sent whose answer this row shows; an answer to an earlier one changes nothing.
    observed_at timestamptz,
    created_at timestamptz NOT NULL,
    CONSTRAINT payout_accounts_weekly_at CHECK ((schedule = 'weekly') = (weekly_at IS NOT NULL)),
    CONSTRAINT payout_accounts_weekly_current CHECK (schedule = 'manual' OR is_current),
    CONSTRAINT payout_accounts_enabled_known CHECK (status <> 'enabled' OR stripe_account_id IS NOT NULL)
);
COMMENT ON TABLE payout_accounts IS 'Connected accounts at Stripe, through which hosts are paid. Wall time, but for weekly_at.';
CREATE UNIQUE INDEX payout_accounts_one_current ON payout_accounts (account_id) WHERE is_current;
CREATE INDEX payout_accounts_account ON payout_accounts (account_id);
CREATE INDEX payout_accounts_weekly ON payout_accounts (weekly_at) WHERE weekly_at IS NOT NULL;

CREATE TABLE payouts (
    id uuid PRIMARY KEY,
    account_id uuid NOT NULL REFERENCES accounts (id),
    payout_account_id uuid NOT NULL REFERENCES payout_accounts (id),
    -- Of the request's Idempotency-Key, as in top_ups.
    request_key text CONSTRAINT payouts_request_key_taken UNIQUE,
    -- What the request asked for; null for all there was, and for a weekly payout.
    requested_micros bigint,
    -- The Monday of a weekly payout.
    week date,
    amount_micros bigint NOT NULL CONSTRAINT payouts_amount_whole_cents CHECK (amount_micros > 0 AND amount_micros % 10000 = 0),
    -- What Stripe says was taken back in all.
    reversed_micros bigint NOT NULL DEFAULT 0 CONSTRAINT payouts_reversed_within CHECK (reversed_micros BETWEEN 0 AND amount_micros),
    status text NOT NULL CONSTRAINT payouts_status_known CHECK (status IN ('pending', 'sent', 'paid', 'failed', 'reversed')),
    stripe_transfer_id text CONSTRAINT payouts_stripe_transfer_taken UNIQUE,
    -- When Stripe made the transfer, by its clock.
    transferred_at timestamptz,
    -- The payout of the connected account, to a bank, that took the money on.
    bank_payout_id text,
    failure_code text,
    alarm text,
    -- Whether what was sent is to be taken back: the bank account is dead.
    is_recalled boolean NOT NULL DEFAULT false,
    -- Of the request to Stripe; the next begins only when the last is known to have done nothing.
    attempt integer NOT NULL DEFAULT 0 CONSTRAINT payouts_attempt_not_negative CHECK (attempt >= 0),
    attempted_at timestamptz,
    ask_at timestamptz,
    ask_count integer NOT NULL DEFAULT 0,
    created_at timestamptz NOT NULL,
    settled_at timestamptz,
    CONSTRAINT payouts_one_a_week UNIQUE (account_id, week),
    CONSTRAINT payouts_week_is_monday CHECK (extract(isodow FROM week) = 1),
    CONSTRAINT payouts_sent_transfer CHECK ((status IN ('sent', 'paid', 'reversed')) = (stripe_transfer_id IS NOT NULL)),
    CONSTRAINT payouts_transfer_dated CHECK ((stripe_transfer_id IS NULL) = (transferred_at IS NULL)),
    CONSTRAINT payouts_reversed_whole CHECK ((status = 'reversed') = (reversed_micros = amount_micros)),
    CONSTRAINT payouts_over_settled CHECK ((status IN ('paid', 'failed', 'reversed')) = (settled_at IS NOT NULL))
);
COMMENT ON TABLE payouts IS 'Money on its way to hosts. It left `payable` in the transaction that made the row. Wall time, but for week and settled_at.';
CREATE INDEX payouts_account ON payouts (account_id, id DESC);
CREATE INDEX payouts_payout_account ON payouts (payout_account_id, status);
CREATE INDEX payouts_ask ON payouts (ask_at) WHERE ask_at IS NOT NULL;
