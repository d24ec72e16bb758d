//! Rigmark: a marketplace for GPU machines where every listing is backed by a measured LLM speed matrix.
//!
//! Layers, top to bottom; imports go only downward (`tests/it/architecture.rs`, ARCHITECTURE.md).

pub mod app;
pub mod cli;
pub mod demo;
pub mod openapi;
pub mod routes;
pub mod worker;

pub mod admin;
pub mod benchmarks;
pub mod billing;
pub mod catalog;
pub mod endpoint;
pub mod identity;
pub mod ledger;
pub mod machines;
pub mod market;
pub mod rentals;
pub mod webhooks;

pub mod ctx;
pub mod engines;
pub mod jobs;
pub mod measure;
pub mod web;

pub mod db;
pub mod integrations;

pub mod base;
pub mod config;
