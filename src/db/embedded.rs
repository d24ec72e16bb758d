//! (being written: signatures only)
use std::path::PathBuf;

use crate::base::{Error, Result};

pub struct EmbeddedConfig {
    pub data_dir: PathBuf,
    pub bin_dir: Option<PathBuf>,
    pub fsync: bool,
}
pub struct Embedded;
impl Embedded {
    pub async fn start(_config: EmbeddedConfig) -> Result<Self> {
        Err(Error::internal("not there yet"))
    }
    pub fn url(&self, _database: &str) -> String {
        String::new()
    }
    pub async fn stop(self) -> Result<()> {
        Ok(())
    }
}
