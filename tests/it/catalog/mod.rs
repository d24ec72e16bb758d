//! Catalog: what names mean, what the tables mirror, what the API answers.

mod api;
mod mirror;
mod models;
mod names;
mod rows;
mod search;
