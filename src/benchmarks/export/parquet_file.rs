//! The export as a Parquet file, made piece by piece: rows of several batches are one row group, so that readers can skip; what a group was
//! encoded to is taken away before the next one begins.

use std::{
    io::{self, Write},
    sync::{Arc, Mutex, PoisonError},
};

use bytes::Bytes;
use parquet::{
    basic::Compression,
    data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int32Type, Int64Type},
    file::{
        properties::WriterProperties,
        writer::{SerializedFileWriter, SerializedRowGroupWriter},
    },
    schema::parser::parse_message_type,
};

use super::model::ExportRow;
use crate::base::{Error, Result};

/// As `model::COLUMNS`.
const SCHEMA: &str = "message cells {
    required binary run_id (STRING);
    required binary by (STRING);
    required binary evidence_level (STRING);
    optional binary model (STRING);
    required binary model_name (STRING);
    optional binary publisher (STRING);
    optional binary quantization (STRING);
    optional binary kv_cache_dtype (STRING);
    optional binary hardware (STRING);
    optional int32 gpu_count;
    optional binary engine (STRING);
    required int64 created_at (TIMESTAMP(MICROS,true));
    required int32 context_tokens;
    required int32 concurrency;
    optional double total_tokens_per_second;
    optional double per_request_tokens_per_second;
    optional double ttft_ms;
    optional double itl_ms;
    optional double cold_ttft_ms;
}";

/// Where the encoder writes, and whence it is taken away.
#[derive(Clone, Default)]
struct Sink(Arc<Mutex<Vec<u8>>>);

impl Sink {
    fn take(&self) -> Bytes {
        Bytes::from(std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner)))
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A file that is being written.
pub(super) struct ParquetFile {
    writer: SerializedFileWriter<Sink>,
    sink: Sink,
}

impl ParquetFile {
    /// # Errors
    /// `internal` for a schema that cannot be read.
    pub fn begin() -> Result<Self> {
        let schema = Arc::new(parse_message_type(SCHEMA).map_err(Error::internal)?);
        let properties = Arc::new(WriterProperties::builder().set_compression(Compression::SNAPPY).build());
        let sink = Sink::default();
        let writer = SerializedFileWriter::new(sink.clone(), schema, properties).map_err(Error::internal)?;
        Ok(Self { writer, sink })
    }

    /// Adds a row group; what is to be sent by now.
    ///
    /// # Errors
    /// `internal` when it cannot be encoded.
    pub fn add(&mut self, rows: &[ExportRow]) -> Result<Bytes> {
        let mut group = self.writer.next_row_group().map_err(Error::internal)?;
        write_columns(&mut group, rows)?;
        group.close().map_err(Error::internal)?;
        Ok(self.sink.take())
    }

    /// The end of the file, which says where everything is.
    ///
    /// # Errors
    /// `internal` when it cannot be encoded.
    pub fn finish(self) -> Result<Bytes> {
        self.writer.close().map_err(Error::internal)?;
        Ok(self.sink.take())
    }
}

type Group<'a> = SerializedRowGroupWriter<'a, Sink>;

fn write_columns(group: &mut Group<'_>, rows: &[ExportRow]) -> Result<()> {
    required_text(group, rows, |row| row.run_id.to_string())?;
    required_text(group, rows, |row| row.by.clone())?;
    required_text(group, rows, |row| row.evidence_level.clone())?;
    text(group, rows, |row| row.model.as_ref())?;
    required_text(group, rows, |row| row.model_name.clone())?;
    text(group, rows, |row| row.publisher.as_ref())?;
    text(group, rows, |row| row.quantization.as_ref())?;
    text(group, rows, |row| row.kv_cache_dtype.as_ref())?;
    text(group, rows, |row| row.hardware.as_ref())?;
    optional::<Int32Type>(group, rows, |row| row.gpu_count)?;
    text(group, rows, |row| row.engine.as_ref())?;
    required::<Int64Type>(group, rows, |row| row.created_at.timestamp_micros())?;
    required::<Int32Type>(group, rows, |row| row.context_tokens)?;
    required::<Int32Type>(group, rows, |row| row.concurrency)?;
    optional::<DoubleType>(group, rows, |row| row.total_tokens_per_second)?;
    optional::<DoubleType>(group, rows, |row| row.per_request_tokens_per_second)?;
    optional::<DoubleType>(group, rows, |row| row.ttft_ms)?;
    optional::<DoubleType>(group, rows, |row| row.itl_ms)?;
    optional::<DoubleType>(group, rows, |row| row.cold_ttft_ms)
}

fn required_text(group: &mut Group<'_>, rows: &[ExportRow], of: impl Fn(&ExportRow) -> String) -> Result<()> {
    required::<ByteArrayType>(group, rows, |row| ByteArray::from(of(row).into_bytes()))
}

fn text<'a>(group: &mut Group<'_>, rows: &'a [ExportRow], of: impl Fn(&'a ExportRow) -> Option<&'a String>) -> Result<()> {
    let values: Vec<Option<ByteArray>> = rows.iter().map(|row| of(row).map(|text| ByteArray::from(text.as_str()))).collect();
    write::<ByteArrayType>(group, values, true)
}

fn required<T: DataType>(group: &mut Group<'_>, rows: &[ExportRow], of: impl Fn(&ExportRow) -> T::T) -> Result<()> {
    write::<T>(group, rows.iter().map(|row| Some(of(row))).collect(), false)
}

fn optional<T: DataType>(group: &mut Group<'_>, rows: &[ExportRow], of: impl Fn(&ExportRow) -> Option<T::T>) -> Result<()> {
    write::<T>(group, rows.iter().map(of).collect(), true)
}

fn write<T: DataType>(group: &mut Group<'_>, values: Vec<Option<T::T>>, is_optional: bool) -> Result<()> {
    let next = group.next_column().map_err(Error::internal)?;
    let mut column = next.ok_or_else(|| Error::internal("more columns than the schema has"))?;
    // One for a value that is there, none for one that is not.
    let levels: Option<Vec<i16>> = is_optional.then(|| values.iter().map(|value| i16::from(value.is_some())).collect());
    let there: Vec<T::T> = values.into_iter().flatten().collect();
    column.typed::<T>().write_batch(&there, levels.as_deref(), None).map_err(Error::internal)?;
    column.close().map_err(Error::internal)
}
