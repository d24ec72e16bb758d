-- What a series has on each board. A person counts once, with the median of the runs they uploaded, whatever account those are of: somebody
-- with five organizations has one vote. Who uploaded stands in the run's first event, which never changes; a run from before there were events
-- counts for its account. The figure is the median of the people. Of two in the middle the weaker one stands, so that there always is a run to
-- name.
CREATE OR REPLACE FUNCTION leaderboard_entries_of(series integer) RETURNS TABLE (
    metric text, least_evidence text, engine text, context_tokens integer, concurrency integer, cell_concurrency integer, run_id uuid,
    figure double precision, sort_value double precision, lowest double precision, highest double precision, run_count bigint,
    account_count bigint, stale_run_count bigint
) LANGUAGE sql STABLE AS $$
    WITH accepted AS MATERIALIZED (
        SELECT r.id, coalesce(u.user_id, r.account_id) AS person, r.created_at, (r.stale_at IS NOT NULL)::integer AS stale, coalesce(r.engine_name, '') AS engine,
               r.evidence_level, r.detail
        FROM leaderboard_accepted(series) r LEFT JOIN LATERAL (
            SELECT e.user_id FROM run_events e WHERE e.run_id = r.id AND e.kind = 'uploaded' ORDER BY e.sequence LIMIT 1) u ON true),
    cells AS MATERIALIZED (
        SELECT c.* FROM accepted a JOIN run_cells c ON c.run_id = a.id WHERE c.status = 'valid'),
    figures AS (
        SELECT c.run_id, 'decode_at' AS metric, c.context_tokens, c.concurrency, c.concurrency AS cell_concurrency,
               c.total_tokens_per_second AS figure, -c.total_tokens_per_second AS sort_value
        FROM cells c WHERE c.total_tokens_per_second > 0
        UNION ALL
        SELECT c.run_id, 'ttft_at', c.context_tokens, c.concurrency, c.concurrency, c.ttft_ms, c.ttft_ms FROM cells c WHERE c.ttft_ms > 0
        UNION ALL
        (SELECT DISTINCT ON (c.run_id, c.context_tokens)
                c.run_id, 'decode_peak', c.context_tokens, 0, c.concurrency, c.total_tokens_per_second, -c.total_tokens_per_second
         FROM cells c WHERE c.total_tokens_per_second > 0
         ORDER BY c.run_id, c.context_tokens, c.total_tokens_per_second DESC, c.concurrency)
        UNION ALL
        SELECT a.id, 'prefill_at', p.context_tokens, 0, 0, p.tokens_per_second, -p.tokens_per_second
        FROM accepted a CROSS JOIN LATERAL jsonb_to_recordset(
                CASE jsonb_typeof(a.detail #> '{matrix,prefill}') WHEN 'array' THEN a.detail #> '{matrix,prefill}' ELSE '[]' END)
            AS p (context_tokens integer, tokens_per_second double precision)
        WHERE p.tokens_per_second > 0),
    scoped AS (
        SELECT f.*, a.person, a.created_at, a.stale, e.least_evidence, n.engine
        FROM figures f JOIN accepted a ON a.id = f.run_id
        JOIN (VALUES ('document', 'document'), ('challenged', 'document'), ('challenged', 'challenged'), ('remeasured', 'document'),
                     ('remeasured', 'challenged'), ('remeasured', 'remeasured')) e (level, least_evidence) ON e.level = a.evidence_level
        CROSS JOIN LATERAL (SELECT '' AS engine UNION SELECT a.engine) n),
    of_person AS (
        SELECT s.*, row_number() OVER (own ORDER BY s.sort_value, s.created_at DESC, s.run_id) AS place, count(*) OVER own AS runs,
               sum(s.stale) OVER own AS stale_runs, min(s.figure) OVER own AS low, max(s.figure) OVER own AS high
        FROM scoped s
        WINDOW own AS (PARTITION BY s.metric, s.least_evidence, s.engine, s.context_tokens, s.concurrency, s.person)),
    of_board AS (
        SELECT o.*, row_number() OVER (whole ORDER BY o.sort_value, o.created_at DESC, o.run_id) AS person_place,
               count(*) OVER whole AS people, sum(o.runs) OVER whole AS all_runs, sum(o.stale_runs) OVER whole AS all_stale,
               min(o.low) OVER whole AS all_low, max(o.high) OVER whole AS all_high
        FROM of_person o WHERE o.place = o.runs / 2 + 1
        WINDOW whole AS (PARTITION BY o.metric, o.least_evidence, o.engine, o.context_tokens, o.concurrency))
    SELECT b.metric, b.least_evidence, b.engine, b.context_tokens, b.concurrency, b.cell_concurrency, b.run_id, b.figure, b.sort_value,
           b.all_low, b.all_high, b.all_runs::bigint, b.people, b.all_stale::bigint
    FROM of_board b WHERE b.person_place = b.people / 2 + 1
$$;

COMMENT ON TABLE leaderboard_entries IS 'A row of a ranking: the median of what people measured of one series, and the run it stands on. Derived from runs, run_standings, run_cells and who uploaded them by leaderboard_refresh alone.';
COMMENT ON COLUMN leaderboard_entries.account_count IS 'People whose runs it is the median of.';
SELECT leaderboard_rebuild();
