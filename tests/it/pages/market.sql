-- A market out of the one run that has been uploaded: six machines, each with a copy of that run as its own, faster or slower.
CREATE TEMPORARY TABLE rows AS
SELECT i, md5('machine' || i)::uuid AS machine_id, md5('run' || i)::uuid AS run_id, md5('listing' || i)::uuid AS listing_id,
       (ARRAY['rtx-3090', 'rtx-4090', 'rtx-5090', 'rtx-3090', 'rtx-a6000', 'rtx-4090'])[i] AS gpu,
       (ARRAY[1, 1, 1, 2, 1, 4])[i] AS gpu_count,
       (ARRAY['us-ca', 'de', 'fi', 'kr', 'us-tx', NULL])[i] AS region,
       (ARRAY[190000, 340000, 460000, 375000, 450000, 1285000])[i] AS price,
       (ARRAY[1, 1.37, 1.92, 1.6, 0.81, 3.9])[i] AS speed,
       (ARRAY['challenged', 'remeasured', 'challenged', 'challenged', 'remeasured', 'challenged'])[i] AS level
FROM generate_series(1, 6) i;

INSERT INTO machines (id, account_id, name, hardware_slug, gpu_count, vram_gib, kind, cpu, ram_gib, region, endpoint_url, last_seen_at, created_at)
SELECT machine_id, (SELECT account_id FROM runs), 'machine ' || i, gpu, gpu_count, h.memory_gib, 'discrete_gpu', 'AMD Ryzen 9 7900X (12C)', 64,
       region, 'http://engine-' || i || '.example.org', now(), now()
FROM rows JOIN hardware_models h ON h.slug = gpu;

INSERT INTO runs (id, account_id, machine_id, status, evidence_level, visibility, model_slug, model_name, publisher, quantization, hardware_slug,
                  gpu_count, engine_name, title, summary, detail, rules_version, document_sha256, decode_single_tokens_per_second,
                  decode_peak_tokens_per_second, prefill_peak_tokens_per_second, upload_key, created_at, expires_at)
SELECT rows.run_id, account_id, rows.machine_id, status, level, visibility, model_slug, model_name, publisher, quantization, gpu,
       rows.gpu_count, engine_name, replace(title, 'RTX 3090 24GB', h.name), summary, detail, rules_version, md5('run' || i),
       decode_single_tokens_per_second * speed, decode_peak_tokens_per_second * speed, prefill_peak_tokens_per_second * speed, 'copy-' || i,
       created_at - i * interval '1 hour', expires_at
FROM runs, rows JOIN hardware_models h ON h.slug = gpu;

INSERT INTO run_documents (run_id, redacted_gzip, original_gzip, original_sha256)
SELECT rows.run_id, redacted_gzip, original_gzip, original_sha256 FROM run_documents, rows;

INSERT INTO run_cells (run_id, context_tokens, concurrency, status, total_tokens_per_second, per_request_tokens_per_second, ttft_ms, itl_ms,
                       cold_ttft_ms)
SELECT rows.run_id, context_tokens, concurrency, status, total_tokens_per_second * speed, per_request_tokens_per_second * speed, ttft_ms / speed,
       itl_ms / speed, cold_ttft_ms / speed
FROM run_cells, rows;

INSERT INTO listings (id, machine_id, account_id, state, price_per_hour_micros, min_hours, run_id, valid_until, is_taken, hardware_slug, gpu_count,
                      vram_gib, region, model, quantization, description, published_at, created_at, updated_at)
SELECT listing_id, rows.machine_id, account_id, 'published', price, CASE WHEN i = 5 THEN 2 ELSE 0 END, rows.run_id, expires_at, i = 6, gpu, rows.gpu_count,
       h.memory_gib, region, model_slug, quantization, CASE WHEN i = 1 THEN 'In a cellar <script>alert(1)</script>, with one fibre.' ELSE '' END,
       now(), now(), now()
FROM rows JOIN runs ON runs.id = rows.run_id JOIN hardware_models h ON h.slug = gpu;

SELECT listing_answers_refresh(array_agg(listing_id)) FROM rows;

DROP TABLE rows;
