-- Fills an empty database with a market: `load.listings` published listings, each backed by a run of ten cells. Some models and GPUs are much
-- more common than others, as on a real market. By hand: psql -c "SET load.listings = '100000'" -f load.sql
SELECT setseed(0.42);

INSERT INTO hardware_models (slug, name, vendor, kind, architecture, memory_gib, bandwidth_gb_s, unified)
SELECT 'load-gpu-' || i, 'Load GPU ' || i, 'Load', 'discrete_gpu', 'Load', (ARRAY[8, 12, 16, 24, 32, 48, 80])[1 + i % 7], 900, false
FROM generate_series(0, 39) i;

INSERT INTO models (slug, hf_id, name, publisher, family, kind, total_params_b, active_params_b, max_context)
SELECT 'load-model-' || i, 'load/model-' || i, 'Load Model ' || i, 'load-' || i % 7, 'load', 'dense', 8, 8, 131072 FROM generate_series(0, 49) i;

INSERT INTO accounts (id, kind, handle, handle_skeleton, display_name, created_at)
SELECT md5('account' || i)::uuid, 'user', 'load-host-' || i, 'load-host-' || i, 'Load Host ' || i, '2026-01-01Z'
FROM generate_series(0, greatest(1, current_setting('load.listings')::integer / 10) - 1) i;

CREATE TEMPORARY TABLE load_rows AS
SELECT i, md5('machine' || i)::uuid AS machine_id, md5('run' || i)::uuid AS run_id, md5('listing' || i)::uuid AS listing_id,
       md5('account' || (i % greatest(1, current_setting('load.listings')::integer / 10)))::uuid AS account_id,
       floor(40 * power(random(), 2))::integer AS gpu, floor(50 * power(random(), 3))::integer AS model,
       (ARRAY[1, 1, 1, 1, 2, 2, 4, 8])[1 + floor(random() * 8)::integer] AS gpu_count,
       (ARRAY['us', 'us-ca', 'us-tx', 'de', 'de-by', 'kr', 'jp', 'gb', 'fr', 'nl'])[1 + floor(random() * 10)::integer] AS region,
       (ARRAY['awq-4bit', 'fp8', 'bf16', 'q4_k_m'])[1 + floor(random() * 4)::integer] AS quantization,
       -- In steps of a tenth of a cent: many prices are equal, and the order falls back on the id.
       (100 + floor(random() * 3900)::bigint) * 1000 AS price_micros,
       20 + random() * 150 AS speed,
       (ARRAY['vllm', 'vllm', 'sglang', 'llama.cpp'])[1 + floor(random() * 4)::integer] AS engine
FROM generate_series(1, current_setting('load.listings')::integer) i;

INSERT INTO machines (id, account_id, name, hardware_slug, gpu_count, vram_gib, kind, region, endpoint_url, last_seen_at, created_at)
SELECT machine_id, account_id, 'machine ' || i, 'load-gpu-' || gpu, gpu_count, h.memory_gib, 'discrete_gpu', region,
       'http://engine-' || i || '.example.org', '2026-11-30Z', '2026-01-01Z'
FROM load_rows JOIN hardware_models h ON h.slug = 'load-gpu-' || gpu;

INSERT INTO runs (id, account_id, machine_id, status, evidence_level, visibility, model_slug, model_name, publisher, quantization, hardware_slug,
                  gpu_count, engine_name, title, summary, detail, rules_version, document_sha256, decode_single_tokens_per_second,
                  decode_peak_tokens_per_second, prefill_peak_tokens_per_second, upload_key, created_at, expires_at)
SELECT run_id, account_id, machine_id, 'verified', CASE WHEN i % 4 = 0 THEN 'remeasured' ELSE 'challenged' END, 'public', 'load-model-' || model,
       'Load Model ' || model, 'load-' || model % 7, quantization, 'load-gpu-' || gpu, gpu_count, engine, 'Run ' || i, repeat('x', 200),
       jsonb_build_object('matrix', jsonb_build_object('prefill', jsonb_build_array(
           jsonb_build_object('context_tokens', 8192, 'tokens_per_second', 30 * speed)))),
       '1', md5(i::text), speed, speed * power(8, 0.8), 30 * speed, 'load-' || i, timestamptz '2026-11-01Z' + i * interval '1 second',
       timestamptz '2027-01-01Z' + i * interval '1 second'
FROM load_rows;

INSERT INTO run_cells (run_id, context_tokens, concurrency, status, total_tokens_per_second, per_request_tokens_per_second, ttft_ms, itl_ms,
                       cold_ttft_ms)
SELECT run_id, context, users,
       -- Heavy cells of some machines ran over their capacity.
       CASE WHEN context >= 32768 AND users = 8 AND i % 3 = 0 THEN 'over_capacity' ELSE 'valid' END,
       speed * power(users, 0.8) / (1 + context / 40000.0), speed, 40 + context / 500.0, 1000 / speed,
       CASE WHEN i % 5 > 0 THEN 50 + context / 4.0 END
FROM load_rows, unnest(ARRAY[0, 4096, 16384, 32768, 65536]) context, unnest(ARRAY[1, 8]) users;

INSERT INTO listings (id, machine_id, account_id, state, price_per_hour_micros, min_hours, run_id, valid_until, is_taken, hardware_slug,
                      gpu_count, vram_gib, region, model, quantization, published_at, created_at, updated_at)
SELECT listing_id, machine_id, account_id, 'published', price_micros, 0, run_id, timestamptz '2027-01-01Z' + i * interval '1 second',
       i % 10 = 0, 'load-gpu-' || gpu, gpu_count, h.memory_gib, region, 'load-model-' || model, quantization, '2026-11-02Z', '2026-11-02Z',
       '2026-11-02Z'
FROM load_rows JOIN hardware_models h ON h.slug = 'load-gpu-' || gpu;

SELECT count(listing_answers_refresh(ids)), count(listing_values_refresh(ids)) FROM (SELECT array_agg(listing_id) AS ids FROM load_rows) made;
ANALYZE;
SELECT leaderboard_rebuild();

DROP TABLE load_rows;
ANALYZE;
