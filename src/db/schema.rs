// Generated from the database by `RIGMARK_UPDATE_SCHEMA=1 cargo test schema`; never edited by hand.

diesel::table! {
    business_clock (id) {
        id -> Int2,
        offset_microseconds -> Int8,
    }
}

diesel::table! {
    jobs (id) {
        id -> Uuid,
        kind -> Text,
        payload -> Jsonb,
        dedupe_key -> Nullable<Text>,
        state -> Text,
        priority -> Int2,
        run_at -> Timestamptz,
        attempts -> Int4,
        attempts_max -> Int4,
        lease_until -> Nullable<Timestamptz>,
        last_error -> Nullable<Text>,
        created_at -> Timestamptz,
        finished_at -> Nullable<Timestamptz>,
    }
}

diesel::table! {
    challenges (id) {
        id -> Uuid,
        machine_id -> Uuid,
        account_id -> Uuid,
        spec -> Jsonb,
        issued_at -> Timestamptz,
        expires_at -> Timestamptz,
        used_at -> Nullable<Timestamptz>,
    }
}

diesel::table! {
    runs (id) {
        id -> Uuid,
        account_id -> Uuid,
        machine_id -> Nullable<Uuid>,
        challenge_id -> Nullable<Uuid>,
        status -> Text,
        evidence_level -> Text,
        visibility -> Text,
        model_slug -> Nullable<Text>,
        model_name -> Text,
        publisher -> Nullable<Text>,
        quantization -> Nullable<Text>,
        hardware_slug -> Nullable<Text>,
        gpu_count -> Nullable<Int4>,
        engine_name -> Nullable<Text>,
        title -> Text,
        summary -> Text,
        detail -> Jsonb,
        rules_version -> Text,
        document_sha256 -> Text,
        decode_single_tokens_per_second -> Nullable<Float8>,
        decode_peak_tokens_per_second -> Nullable<Float8>,
        prefill_peak_tokens_per_second -> Nullable<Float8>,
        upload_key -> Text,
        created_at -> Timestamptz,
        expires_at -> Timestamptz,
        stale_at -> Nullable<Timestamptz>,
        stale_reason -> Nullable<Text>,
        reviewed_at -> Nullable<Timestamptz>,
        reviewed_by -> Nullable<Uuid>,
        review_reason -> Nullable<Text>,
    }
}

diesel::table! {
    run_documents (run_id) {
        run_id -> Uuid,
        redacted_gzip -> Bytea,
        original_gzip -> Bytea,
        original_sha256 -> Text,
    }
}

diesel::table! {
    run_cells (run_id, context_tokens, concurrency) {
        run_id -> Uuid,
        context_tokens -> Int4,
        concurrency -> Int4,
        status -> Text,
        total_tokens_per_second -> Nullable<Float8>,
        per_request_tokens_per_second -> Nullable<Float8>,
        ttft_ms -> Nullable<Float8>,
        itl_ms -> Nullable<Float8>,
        cold_ttft_ms -> Nullable<Float8>,
    }
}

diesel::table! {
    run_marks (run_id, kind, value) {
        run_id -> Uuid,
        kind -> Text,
        value -> Text,
    }
}
