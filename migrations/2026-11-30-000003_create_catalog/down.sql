DROP TABLE models;
DROP TABLE hardware_models;
