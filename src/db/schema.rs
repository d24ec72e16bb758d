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
