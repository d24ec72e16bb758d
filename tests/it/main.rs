//! The one integration binary: whole-program checks and a folder for each domain.

mod architecture;
mod migrations;
mod money;
mod schema;
mod support;

mod benchmarks;
mod catalog;
mod db;
mod engines;
mod identity;
mod ledger;
mod measure;
mod pages;
mod web;
