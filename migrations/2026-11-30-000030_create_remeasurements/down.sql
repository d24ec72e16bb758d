DROP TABLE run_standings;
DROP TABLE remeasure_schedules;
DROP TABLE remeasurements;
