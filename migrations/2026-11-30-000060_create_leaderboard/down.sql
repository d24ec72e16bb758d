DROP FUNCTION leaderboard_rebuild, leaderboard_run_changed, leaderboard_refresh, leaderboard_entries_of, leaderboard_accepted;
DROP TABLE leaderboard_entries, boards, run_series, board_series;
ALTER TABLE runs DROP COLUMN kv_cache_dtype;
