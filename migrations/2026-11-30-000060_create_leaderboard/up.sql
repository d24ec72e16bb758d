ALTER TABLE runs ADD COLUMN kv_cache_dtype text;
COMMENT ON COLUMN runs.kv_cache_dtype IS 'As the launch command names it, in one spelling; null where it names none, which is the engine''s own choice.';

CREATE TABLE board_series (
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    model text NOT NULL,
    quantization text NOT NULL,
    kv_cache_dtype text NOT NULL,
    hardware_slug text NOT NULL REFERENCES hardware_models (slug),
    gpu_count integer NOT NULL,
    publisher text,
    run_count integer NOT NULL DEFAULT 0,
    UNIQUE (model, quantization, kv_cache_dtype, hardware_slug, gpu_count)
);
COMMENT ON TABLE board_series IS 'What accepted runs are compared by, but for context and concurrency. Rows stay. Its lock is what writers of leaderboard_entries wait for.';
COMMENT ON COLUMN board_series.model IS 'Slug of the catalog, or the name it was uploaded under.';
COMMENT ON COLUMN board_series.kv_cache_dtype IS '''auto'' where the runs name none.';
COMMENT ON COLUMN board_series.run_count IS 'Accepted runs.';
CREATE INDEX board_series_hardware ON board_series (hardware_slug);
CREATE INDEX board_series_publisher ON board_series (publisher);

CREATE TABLE run_series (
    run_id uuid PRIMARY KEY REFERENCES runs (id),
    series_id integer NOT NULL REFERENCES board_series (id)
);
COMMENT ON TABLE run_series IS 'Which series a run belongs to by what it is said to be of, accepted or not; none while it does not say, or nothing of the kind was accepted.';
CREATE INDEX run_series_series ON run_series (series_id);

CREATE TABLE boards (
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    metric text NOT NULL CONSTRAINT boards_metric_known CHECK (metric IN ('decode_at', 'decode_peak', 'prefill_at', 'ttft_at')),
    least_evidence text NOT NULL CONSTRAINT boards_least_evidence_known CHECK (least_evidence IN ('document', 'challenged', 'remeasured')),
    engine text NOT NULL,
    context_tokens integer NOT NULL,
    concurrency integer NOT NULL,
    UNIQUE (metric, least_evidence, engine, context_tokens, concurrency)
);
COMMENT ON TABLE boards IS 'One ranking: a metric at a place of the matrix, over runs of at least this evidence and of one engine or any. Rows stay.';
COMMENT ON COLUMN boards.engine IS 'Empty: of any engine.';
COMMENT ON COLUMN boards.concurrency IS '0 where the metric has none: the best over all levels, or a prompt alone.';

CREATE TABLE leaderboard_entries (
    -- No foreign keys: boards and series stay, and a key costs a look-up for each of some hundred rows that a run changes.
    board_id integer NOT NULL,
    series_id integer NOT NULL,
    run_id uuid NOT NULL REFERENCES runs (id),
    concurrency integer NOT NULL,
    figure double precision NOT NULL,
    sort_value double precision NOT NULL,
    lowest double precision NOT NULL,
    highest double precision NOT NULL,
    run_count integer NOT NULL,
    account_count integer NOT NULL,
    stale_run_count integer NOT NULL,
    model text NOT NULL,
    publisher text,
    hardware_slug text NOT NULL,
    gpu_count integer NOT NULL,
    quantization text NOT NULL,
    kv_cache_dtype text NOT NULL,
    PRIMARY KEY (board_id, series_id)
);
COMMENT ON TABLE leaderboard_entries IS 'A row of a ranking: the median of what accounts measured of one series, and the run it stands on. Derived from runs, run_standings and run_cells by leaderboard_refresh alone.';
COMMENT ON COLUMN leaderboard_entries.concurrency IS 'Of the run''s cell: for a peak the level where it was.';
COMMENT ON COLUMN leaderboard_entries.sort_value IS 'The figure, negative where more is better: every order goes up.';
COMMENT ON COLUMN leaderboard_entries.model IS 'This and the following are the series'', so that an index answers the filters.';
CREATE INDEX leaderboard_entries_series ON leaderboard_entries (series_id);
CREATE INDEX leaderboard_entries_run ON leaderboard_entries (run_id);
-- Each in the order of a ranking, then what else it may be narrowed by.
CREATE INDEX leaderboard_entries_by_rank
    ON leaderboard_entries (board_id, sort_value, quantization, kv_cache_dtype, series_id, gpu_count, publisher, hardware_slug, model);
CREATE INDEX leaderboard_entries_by_model
    ON leaderboard_entries (board_id, model, sort_value, quantization, kv_cache_dtype, series_id, gpu_count, hardware_slug);
CREATE INDEX leaderboard_entries_by_hardware
    ON leaderboard_entries (board_id, hardware_slug, sort_value, quantization, kv_cache_dtype, series_id, gpu_count, model);

-- A run is accepted when it is verified, public and in no dispute.
CREATE FUNCTION leaderboard_accepted(series integer) RETURNS SETOF runs LANGUAGE sql STABLE AS $$
    SELECT r.*
    FROM run_series x JOIN runs r ON r.id = x.run_id LEFT JOIN run_standings rs ON rs.run_id = r.id
    WHERE x.series_id = series AND r.status = 'verified' AND r.visibility = 'public' AND r.evidence_level <> 'reported'
      AND rs.disputed_at IS NULL
      -- A quick profile measures little and is kept out of statistics.
      AND NOT coalesce(r.detail -> 'findings', '[]') @> '[{"code": "profile_quick"}]'
$$;

-- What a series has on each board. An account counts once, with the median of its
-- runs; the figure is the median of the accounts. Of two in the middle the weaker one stands, so that there always is a run to name.
CREATE FUNCTION leaderboard_entries_of(series integer) RETURNS TABLE (
    metric text, least_evidence text, engine text, context_tokens integer, concurrency integer, cell_concurrency integer, run_id uuid,
    figure double precision, sort_value double precision, lowest double precision, highest double precision, run_count bigint,
    account_count bigint, stale_run_count bigint
) LANGUAGE sql STABLE AS $$
    WITH accepted AS MATERIALIZED (
        SELECT r.id, r.account_id, r.created_at, (r.stale_at IS NOT NULL)::integer AS stale, coalesce(r.engine_name, '') AS engine,
               r.evidence_level, r.detail
        FROM leaderboard_accepted(series) r),
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
        SELECT f.*, a.account_id, a.created_at, a.stale, e.least_evidence, n.engine
        FROM figures f JOIN accepted a ON a.id = f.run_id
        JOIN (VALUES ('document', 'document'), ('challenged', 'document'), ('challenged', 'challenged'), ('remeasured', 'document'),
                     ('remeasured', 'challenged'), ('remeasured', 'remeasured')) e (level, least_evidence) ON e.level = a.evidence_level
        CROSS JOIN LATERAL (SELECT '' AS engine UNION SELECT a.engine) n),
    of_account AS (
        SELECT s.*, row_number() OVER (own ORDER BY s.sort_value, s.created_at DESC, s.run_id) AS place, count(*) OVER own AS runs,
               sum(s.stale) OVER own AS stale_runs, min(s.figure) OVER own AS low, max(s.figure) OVER own AS high
        FROM scoped s
        WINDOW own AS (PARTITION BY s.metric, s.least_evidence, s.engine, s.context_tokens, s.concurrency, s.account_id)),
    of_board AS (
        SELECT o.*, row_number() OVER (whole ORDER BY o.sort_value, o.created_at DESC, o.run_id) AS account_place,
               count(*) OVER whole AS accounts, sum(o.runs) OVER whole AS all_runs, sum(o.stale_runs) OVER whole AS all_stale,
               min(o.low) OVER whole AS all_low, max(o.high) OVER whole AS all_high
        FROM of_account o WHERE o.place = o.runs / 2 + 1
        WINDOW whole AS (PARTITION BY o.metric, o.least_evidence, o.engine, o.context_tokens, o.concurrency))
    SELECT b.metric, b.least_evidence, b.engine, b.context_tokens, b.concurrency, b.cell_concurrency, b.run_id, b.figure, b.sort_value,
           b.all_low, b.all_high, b.all_runs::bigint, b.accounts, b.all_stale::bigint
    FROM of_board b WHERE b.account_place = b.accounts / 2 + 1
$$;

-- Writes the rows of a series anew. Whoever writes waits for the series' lock first, and then sees what was committed meanwhile.
CREATE FUNCTION leaderboard_refresh(series integer) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM board_series s WHERE s.id = series FOR NO KEY UPDATE;
    UPDATE board_series s SET run_count = (SELECT count(*) FROM leaderboard_accepted(series)) WHERE s.id = series;
    DELETE FROM leaderboard_entries e WHERE e.series_id = series;
    WITH made AS MATERIALIZED (SELECT * FROM leaderboard_entries_of(series)),
    known AS MATERIALIZED (
        SELECT b.id, m.* FROM made m LEFT JOIN boards b
            ON (b.metric, b.least_evidence, b.engine, b.context_tokens, b.concurrency)
             = (m.metric, m.least_evidence, m.engine, m.context_tokens, m.concurrency)),
    -- One that another transaction made meanwhile is touched, so that it is returned.
    new AS (
        INSERT INTO boards AS b (metric, least_evidence, engine, context_tokens, concurrency)
        SELECT k.metric, k.least_evidence, k.engine, k.context_tokens, k.concurrency FROM known k WHERE k.id IS NULL ORDER BY 1, 2, 3, 4, 5
        ON CONFLICT (metric, least_evidence, engine, context_tokens, concurrency) DO UPDATE SET metric = b.metric
        RETURNING b.*)
    INSERT INTO leaderboard_entries (board_id, series_id, run_id, concurrency, figure, sort_value, lowest, highest, run_count, account_count,
                                     stale_run_count, model, publisher, hardware_slug, gpu_count, quantization, kv_cache_dtype)
    SELECT coalesce(k.id, n.id), s.id, k.run_id, k.cell_concurrency, k.figure, k.sort_value, k.lowest, k.highest, k.run_count::integer,
           k.account_count::integer, k.stale_run_count::integer, s.model, s.publisher, s.hardware_slug, s.gpu_count, s.quantization,
           s.kv_cache_dtype
    FROM board_series s CROSS JOIN known k LEFT JOIN new n
        ON (n.metric, n.least_evidence, n.engine, n.context_tokens, n.concurrency)
         = (k.metric, k.least_evidence, k.engine, k.context_tokens, k.concurrency)
    WHERE s.id = series;
END
$$;

-- To be called in the transaction that inserts a run or changes its standing, what it is said to be of, or its cells. A run that does not say
-- what it is of is compared with nothing.
CREATE FUNCTION leaderboard_run_changed(run uuid) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    was integer;
    now_in integer;
    one integer;
BEGIN
    SELECT r.series_id INTO was FROM run_series r WHERE r.run_id = run;
    INSERT INTO board_series (model, quantization, kv_cache_dtype, hardware_slug, gpu_count, publisher)
    SELECT coalesce(r.model_slug, r.model_name), r.quantization, coalesce(r.kv_cache_dtype, 'auto'), r.hardware_slug, r.gpu_count, m.publisher
    FROM runs r LEFT JOIN models m ON m.slug = r.model_slug
    WHERE r.id = run AND r.status = 'verified' AND r.visibility = 'public'
      AND r.quantization IS NOT NULL AND r.hardware_slug IS NOT NULL AND r.gpu_count IS NOT NULL
    ON CONFLICT DO NOTHING;
    SELECT s.id INTO now_in FROM runs r JOIN board_series s
        ON (s.model, s.quantization, s.kv_cache_dtype, s.hardware_slug, s.gpu_count)
         = (coalesce(r.model_slug, r.model_name), r.quantization, coalesce(r.kv_cache_dtype, 'auto'), r.hardware_slug, r.gpu_count)
    WHERE r.id = run;
    IF now_in IS NULL THEN
        DELETE FROM run_series r WHERE r.run_id = run;
    ELSE
        INSERT INTO run_series AS r (run_id, series_id) VALUES (run, now_in)
        ON CONFLICT (run_id) DO UPDATE SET series_id = excluded.series_id WHERE r.series_id <> excluded.series_id;
    END IF;
    FOR one IN SELECT DISTINCT i FROM unnest(ARRAY[was, now_in]) i WHERE i IS NOT NULL ORDER BY i LOOP
        PERFORM leaderboard_refresh(one);
    END LOOP;
END
$$;

-- Everything anew, for a store that was filled by other means: waits for all series, and computes and writes in one go.
CREATE FUNCTION leaderboard_rebuild() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO board_series (model, quantization, kv_cache_dtype, hardware_slug, gpu_count, publisher)
    SELECT DISTINCT ON (1, 2, 3, 4, 5) coalesce(r.model_slug, r.model_name), r.quantization, coalesce(r.kv_cache_dtype, 'auto'), r.hardware_slug,
           r.gpu_count, m.publisher
    FROM runs r LEFT JOIN models m ON m.slug = r.model_slug
    WHERE r.status = 'verified' AND r.visibility = 'public'
      AND r.quantization IS NOT NULL AND r.hardware_slug IS NOT NULL AND r.gpu_count IS NOT NULL
    ORDER BY 1, 2, 3, 4, 5
    ON CONFLICT DO NOTHING;
    PERFORM FROM board_series s ORDER BY s.id FOR NO KEY UPDATE;
    INSERT INTO run_series AS old (run_id, series_id)
    SELECT r.id, s.id FROM runs r JOIN board_series s
        ON (s.model, s.quantization, s.kv_cache_dtype, s.hardware_slug, s.gpu_count)
         = (coalesce(r.model_slug, r.model_name), r.quantization, coalesce(r.kv_cache_dtype, 'auto'), r.hardware_slug, r.gpu_count)
    ON CONFLICT (run_id) DO UPDATE SET series_id = excluded.series_id WHERE old.series_id <> excluded.series_id;
    UPDATE board_series s SET run_count = found.run_count
    FROM (SELECT o.id, (SELECT count(*) FROM leaderboard_accepted(o.id)) AS run_count FROM board_series o) found
    WHERE found.id = s.id AND s.run_count <> found.run_count;
    DELETE FROM leaderboard_entries;
    INSERT INTO boards (metric, least_evidence, engine, context_tokens, concurrency)
    SELECT DISTINCT m.metric, m.least_evidence, m.engine, m.context_tokens, m.concurrency
    FROM board_series s CROSS JOIN LATERAL leaderboard_entries_of(s.id) m ORDER BY 1, 2, 3, 4, 5
    ON CONFLICT DO NOTHING;
    INSERT INTO leaderboard_entries (board_id, series_id, run_id, concurrency, figure, sort_value, lowest, highest, run_count, account_count,
                                     stale_run_count, model, publisher, hardware_slug, gpu_count, quantization, kv_cache_dtype)
    SELECT b.id, s.id, m.run_id, m.cell_concurrency, m.figure, m.sort_value, m.lowest, m.highest, m.run_count::integer, m.account_count::integer,
           m.stale_run_count::integer, s.model, s.publisher, s.hardware_slug, s.gpu_count, s.quantization, s.kv_cache_dtype
    FROM board_series s CROSS JOIN LATERAL leaderboard_entries_of(s.id) m
    JOIN boards b ON (b.metric, b.least_evidence, b.engine, b.context_tokens, b.concurrency)
        = (m.metric, m.least_evidence, m.engine, m.context_tokens, m.concurrency)
    ORDER BY b.id, m.sort_value, s.quantization, s.kv_cache_dtype, s.id;
END
$$;
SELECT leaderboard_rebuild();
