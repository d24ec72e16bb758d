CREATE TABLE deployment (
    single boolean PRIMARY KEY DEFAULT true CONSTRAINT deployment_single CHECK (single),
    mode text NOT NULL CONSTRAINT deployment_mode_known CHECK (mode IN ('sandbox', 'test', 'live')),
    since timestamptz NOT NULL DEFAULT now()
);
COMMENT ON TABLE deployment IS 'The mode that this database is of: the first start of a server says so, and no other mode starts on it, lest play money become money.';
INSERT INTO deployment (mode) SELECT 'sandbox' WHERE EXISTS (SELECT FROM transfers WHERE code = 'sandbox_credit');
