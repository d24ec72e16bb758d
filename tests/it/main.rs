//! The one integration binary: whole-program checks and a folder for each domain.

mod architecture;
mod migrations;
mod schema;
mod support;

mod catalog;
mod db;
mod engines;
mod identity;
mod measure;
mod web;
