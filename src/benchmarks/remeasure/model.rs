//! Rows of re-measurements and what the API shows of them.

use chrono::{DateTime, Utc};
use diesel::prelude::*;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Reason, Sample, Status};
use crate::{
    base::{
        Error, Result,
        id::{MachineId, RemeasurementId, RunId},
    },
    db::schema::remeasurements,
    measure::spot::Answers,
};

/// Kind of the job that measures. Its payload is [`RemeasureJob`].
pub const REMEASURE: &str = "remeasure";

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RemeasureJob {
    pub remeasurement_id: RemeasurementId,
}

/// One row of `remeasurements`.
#[derive(Debug, Clone, Queryable, Selectable, Insertable, AsChangeset)]
#[diesel(table_name = remeasurements, check_for_backend(diesel::pg::Pg), treat_none_as_null = true)]
pub struct Remeasurement {
    pub id: RemeasurementId,
    pub machine_id: MachineId,
    pub run_id: RunId,
    pub reason: String,
    pub status: String,
    /// How often a worker has begun it.
    pub attempts: i32,
    /// [`super::PlannedCell`]s; shown to nobody.
    pub plan: serde_json::Value,
    pub samples: serde_json::Value,
    pub answers: Option<serde_json::Value>,
    pub detail: Option<String>,
    pub created_at: DateTime<Utc>,
    pub started_at: Option<DateTime<Utc>>,
    pub finished_at: Option<DateTime<Utc>>,
}

impl Remeasurement {
    pub fn queued(machine_id: MachineId, run_id: RunId, reason: Reason, now: DateTime<Utc>) -> Self {
        Self {
            id: RemeasurementId::new(),
            machine_id,
            run_id,
            reason: reason.as_str().to_owned(),
            status: Status::Queued.as_str().to_owned(),
            attempts: 0,
            plan: serde_json::Value::Array(Vec::new()),
            samples: serde_json::Value::Array(Vec::new()),
            answers: None,
            detail: None,
            created_at: now,
            started_at: None,
            finished_at: None,
        }
    }

    /// # Errors
    /// `internal` for a word that this program does not know.
    pub fn status(&self) -> Result<Status> {
        let found = Status::ALL.into_iter().find(|status| status.as_str() == self.status);
        found.ok_or_else(|| Error::internal("a re-measurement's status that is not known"))
    }

    /// # Errors
    /// `internal` for a word that this program does not know.
    pub fn reason(&self) -> Result<Reason> {
        let found = Reason::ALL.into_iter().find(|reason| reason.as_str() == self.reason);
        found.ok_or_else(|| Error::internal("a re-measurement's reason that is not known"))
    }
}

/// A re-measurement as the machine's owner sees it.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct RemeasurementView {
    #[schema(value_type = String, example = "rem_01h455vb4pex5vsknk084sn02q")]
    pub id: RemeasurementId,
    #[schema(value_type = String)]
    pub machine_id: MachineId,
    /// The run that is compared with.
    #[schema(value_type = String)]
    pub run_id: RunId,
    pub status: Status,
    pub reason: Reason,
    /// Why it did not agree, in words.
    pub detail: Option<String>,
    /// Which of the streams answered what they were asked about their prompt.
    pub answers: Option<Answers>,
    /// Empty until it is finished.
    pub samples: Vec<Sample>,
    pub created_at: DateTime<Utc>,
    pub started_at: Option<DateTime<Utc>>,
    pub finished_at: Option<DateTime<Utc>>,
}

impl RemeasurementView {
    /// # Errors
    /// `internal` for a row that this program does not know.
    pub fn of(row: Remeasurement) -> Result<Self> {
        Ok(Self {
            status: row.status()?,
            reason: row.reason()?,
            answers: row.answers.map(serde_json::from_value).transpose().map_err(Error::internal)?,
            samples: serde_json::from_value(row.samples).map_err(Error::internal)?,
            id: row.id,
            machine_id: row.machine_id,
            run_id: row.run_id,
            detail: row.detail,
            created_at: row.created_at,
            started_at: row.started_at,
            finished_at: row.finished_at,
        })
    }
}

/// A machine whose time has come.
#[derive(Debug, Clone)]
pub struct Due {
    pub machine_id: MachineId,
    pub reason: Reason,
    pub failures: i32,
}
