// Generated from the database by `RIGMARK_UPDATE_SCHEMA=1 cargo test schema`; never edited by hand.

diesel::table! {
    business_clock (id) {
        id -> Int2,
        offset_microseconds -> Int8,
    }
}

diesel::table! {
    hardware_models (slug) {
        slug -> Text,
        name -> Text,
        vendor -> Text,
        kind -> Text,
        architecture -> Text,
        memory_gib -> Nullable<Float8>,
        bandwidth_gb_s -> Nullable<Float8>,
        unified -> Bool,
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
    models (slug) {
        slug -> Text,
        hf_id -> Text,
        name -> Text,
        publisher -> Text,
        family -> Text,
        kind -> Text,
        total_params_b -> Float8,
        active_params_b -> Float8,
        max_context -> Int4,
    }
}
