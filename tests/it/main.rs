//! The one integration binary: whole-program checks and a folder for each domain.

mod architecture;
mod demo;
mod foreign;
mod migrations;
mod money;
mod papers;
mod program;
mod readme;
mod routes;
mod schema;
mod support;
mod texts;

mod benchmarks;
mod billing;
mod boards;
mod catalog;
mod db;
mod endpoint;
mod engines;
mod identity;
mod kills;
mod ledger;
mod machines;
mod market;
mod measure;
mod pages;
mod remeasure;
mod rentals;
mod review;
mod stripe;
mod web;
mod webhooks;
