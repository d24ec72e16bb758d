CREATE TABLE disputes (
    id uuid PRIMARY KEY,
    top_up_id uuid NOT NULL REFERENCES top_ups (id),
    account_id uuid NOT NULL REFERENCES accounts (id),
    stripe_dispute_id text NOT NULL CONSTRAINT disputes_stripe_dispute_taken UNIQUE,
    amount_micros bigint NOT NULL CONSTRAINT disputes_amount_positive CHECK (amount_micros > 0),
    -- Stripe's word, such as fraudulent.
    reason text NOT NULL CONSTRAINT disputes_reason_length CHECK (char_length(reason) BETWEEN 1 AND 255),
    status text NOT NULL CONSTRAINT disputes_status_known CHECK (status IN ('warning_needs_response', 'warning_under_review',
        'needs_response', 'under_review', 'warning_closed', 'won', 'lost', 'prevented')),
    -- What Stripe has taken for it in all, and what it has given back in all; both are booked. They only grow.
    withdrawn_micros bigint NOT NULL DEFAULT 0 CHECK (withdrawn_micros >= 0),
    reinstated_micros bigint NOT NULL DEFAULT 0 CHECK (reinstated_micros >= 0),
    -- What Stripe charges the platform for it. Not the account's, and no posting: Stripe's own fees are read from Stripe.
    fee_micros bigint NOT NULL DEFAULT 0,
    -- The amount, or what there was of it, set aside while it is open and nothing was taken yet.
    hold_id uuid REFERENCES holds (id),
    evidence_due_at timestamptz,
    ask_at timestamptz,
    ask_count integer NOT NULL DEFAULT 0,
    created_at timestamptz NOT NULL,
    closed_at timestamptz,
    CONSTRAINT disputes_over_closed CHECK ((status IN ('warning_closed', 'won', 'lost', 'prevented')) = (closed_at IS NOT NULL))
);
COMMENT ON TABLE disputes IS 'Payments that a bank asks about or takes back, each as it stands at Stripe. Wall time, but for closed_at, which is business time.';
CREATE INDEX disputes_top_up ON disputes (top_up_id);
CREATE INDEX disputes_account ON disputes (account_id, id DESC);
CREATE INDEX disputes_hold ON disputes (hold_id) WHERE hold_id IS NOT NULL;
CREATE INDEX disputes_ask ON disputes (ask_at) WHERE ask_at IS NOT NULL;

CREATE TABLE account_freezes (
    account_id uuid NOT NULL REFERENCES accounts (id),
    subject text NOT NULL CONSTRAINT account_freezes_subject_length CHECK (char_length(subject) BETWEEN 1 AND 255),
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (account_id, subject)
);
COMMENT ON TABLE account_freezes IS 'Accounts that may set no money aside for new rentals, and why: one row for each reason.';
