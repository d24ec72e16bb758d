-- 10,000 active rentals of an hour's hold or less, at 0.36 $/h: a minute is 6,000 micro-dollars, of which the platform takes 600. Their holds
-- last from 10 to 59 minutes, so that a tick renews one in fifty, as it does in the long run.
SET session_replication_role = replica;

INSERT INTO accounts (id, kind, handle, handle_skeleton, display_name, created_at)
SELECT id, 'user', 'bench-' || kind || '-' || number, 'bench-' || kind || '-' || number, 'Bench', '2026-11-01Z' FROM bench_accounts;

CREATE TABLE bench_charges AS
SELECT i AS number, md5('hold' || i)::uuid AS hold_id, md5('rental' || i)::uuid AS rental_id, md5('machine' || i)::uuid AS machine_id,
       md5('listing' || i)::uuid AS listing_id, md5('hold transfer' || i)::uuid AS transfer_id, 60000 + i % 50 * 6000 AS amount,
       r.id AS renter, h.id AS host, r.available, r.held, h.earnings, p.fees
FROM generate_series(0, 9999) i
JOIN bench_accounts r ON r.kind = 'renter' AND r.number = i % 5000 JOIN bench_accounts h ON h.kind = 'host' AND h.number = i % 1000
CROSS JOIN bench_platform p;
ALTER TABLE bench_charges ADD PRIMARY KEY (number);

INSERT INTO machines (id, account_id, name, hardware_slug, gpu_count, kind, region, last_seen_at, created_at)
SELECT machine_id, host, 'machine', 'rtx-3090', 1, 'discrete_gpu', 'us', '2026-11-30 06:00Z', '2026-11-01Z' FROM bench_charges;

INSERT INTO listings (id, machine_id, account_id, state, price_per_hour_micros, min_hours, is_taken, hardware_slug, gpu_count, created_at,
                      updated_at)
SELECT listing_id, machine_id, host, 'paused', 360000, 0, true, 'rtx-3090', 1, '2026-11-01Z', '2026-11-01Z' FROM bench_charges;

INSERT INTO rentals (id, renter_account_id, host_account_id, listing_id, machine_id, status, period, price_per_hour_micros, fee_basis_points,
                     min_hours, hold_id, model, created_at, starts_at, boot_deadline_at, active_at, settled_through, transfer_sequence,
                     next_due_at)
SELECT rental_id, renter, host, listing_id, machine_id, 'active', tstzrange('2026-11-30 06:00Z', NULL), 360000, 1000, 0, hold_id, 'model',
       '2026-11-30 06:00Z', '2026-11-30 06:00Z', '2026-11-30 06:10Z', '2026-11-30 06:00Z', '2026-11-30 06:00Z', 1,
       timestamptz '2026-11-30 06:00Z' + number % 50 * interval '1 minute'
FROM bench_charges;
INSERT INTO rental_segments (rental_id, sequence, started_at) SELECT rental_id, 0, '2026-11-30 06:00Z' FROM bench_charges;

INSERT INTO holds (id, account_id, rental_id, amount_micros) SELECT hold_id, renter, rental_id, amount FROM bench_charges;
-- The accounts whose balances are read: a hundred thousand times over, a hold grows and is given back.
INSERT INTO holds (id, account_id, amount_micros, released_micros)
SELECT md5('hold ' || kind)::uuid, id, n * 1000, n * 1000
FROM (SELECT kind, id, CASE kind WHEN 'long' THEN 250000 ELSE 2 END AS n FROM bench_accounts WHERE kind IN ('long', 'short')) made;

CREATE TEMPORARY TABLE made (ordinal bigint, transfer uuid, code text, hold uuid, rental uuid, ledger uuid, amount bigint, account uuid);
-- A thousand dollars for each renter and reader.
INSERT INTO made
SELECT a.number, md5('credit ' || a.kind || a.number)::uuid, 'sandbox_credit', NULL, NULL, v.ledger, v.amount, v.account
FROM bench_accounts a CROSS JOIN bench_platform p,
     LATERAL (VALUES (p.mint, -1000000000, NULL::uuid), (a.available, 1000000000, a.id)) v(ledger, amount, account)
WHERE a.kind <> 'host';
INSERT INTO made
SELECT 10000 + c.number, c.transfer_id, 'hold', c.hold_id, c.rental_id, v.ledger, v.amount, c.renter
FROM bench_charges c, LATERAL (VALUES (c.available, -c.amount), (c.held, c.amount)) v(ledger, amount);
INSERT INTO made
SELECT 100000 + i, md5('step ' || a.kind || i)::uuid, CASE i % 2 WHEN 0 THEN 'hold_increase' ELSE 'hold_release' END,
       md5('hold ' || a.kind)::uuid, NULL, v.ledger, v.amount, a.id
FROM bench_accounts a, LATERAL generate_series(0, CASE a.kind WHEN 'long' THEN 499999 ELSE 3 END) i,
     LATERAL (VALUES (a.available, CASE i % 2 WHEN 0 THEN -1000 ELSE 1000 END), (a.held, CASE i % 2 WHEN 0 THEN 1000 ELSE -1000 END))
         v(ledger, amount)
WHERE a.kind IN ('long', 'short');

INSERT INTO transfers (id, code, posting_count, hold_id, rental_id, actor_kind, business_at)
SELECT transfer, code, 2, hold, rental, 'system', '2026-11-30 06:00Z' FROM made GROUP BY transfer, code, hold, rental;

INSERT INTO postings (sequence, transfer_id, ledger_account_id, amount_micros, balance_after_micros, account_id, business_at)
SELECT sequence, transfer, ledger, amount, sum(amount) OVER (PARTITION BY ledger ORDER BY sequence), account, '2026-11-30 06:00Z'
FROM (SELECT row_number() OVER (ORDER BY ordinal, transfer, ledger) AS sequence, * FROM made) ordered;
SELECT setval('postings_sequence', (SELECT max(sequence) FROM postings));

INSERT INTO ledger_accounts (id, key, account_id, kind, currency, balance_micros, may_be_negative)
SELECT v.id, coalesce(v.account::text || ':', '') || v.kind, v.account, v.kind, 'usd', coalesce(s.total, 0), v.account IS NULL
FROM (
    SELECT available AS id, id AS account, 'available' AS kind FROM bench_accounts WHERE kind <> 'host'
    UNION ALL SELECT held, id, 'held' FROM bench_accounts WHERE kind <> 'host'
    UNION ALL SELECT earnings, id, 'earnings' FROM bench_accounts WHERE kind = 'host'
    UNION ALL SELECT fees, NULL, 'platform:fees' FROM bench_platform
    UNION ALL SELECT mint, NULL, 'sandbox:mint' FROM bench_platform
) v LEFT JOIN (SELECT ledger, sum(amount) AS total FROM made GROUP BY ledger) s ON s.ledger = v.id;

CREATE TABLE bench_balances AS SELECT kind AS history, id FROM bench_accounts WHERE kind IN ('long', 'short');
DROP TABLE made;
RESET session_replication_role;
