DROP TABLE run_marks;
DROP TABLE run_cells;
DROP TABLE run_documents;
DROP TABLE runs;
DROP TABLE challenges;
