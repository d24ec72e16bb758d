//! The one table of checks: what each code means, for the page of a run and the page of rules.

use serde::Serialize;
use utoipa::ToSchema;

use super::Severity;

/// Groups of evidence.md: exact arithmetic, tolerances, the physics of the hardware, and what surrounds the numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Group {
    /// Relations that the tool's own arithmetic makes exact.
    Exact,
    /// Relations that hold within a tolerance.
    Tolerance,
    /// What this hardware can do.
    Physical,
    /// Which cells there are, and which there should be.
    Structure,
    /// Versions, modes and what the run was.
    Document,
    /// The machine and its claim.
    Hardware,
    /// The answer to a challenge.
    Challenge,
    /// Copies of other runs.
    Duplicate,
}

/// The most that a finding of a check does to the verdict. Where the check's assumptions do not hold it does less.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Weight {
    /// It is only said.
    Note,
    /// A person looks.
    Review,
    /// The versions that are known to keep the relation (0.4.16 and later, by their word or their shape) are rejected; older and newer ones
    /// are looked at by a person. A newer one is rejected too where most of its cells keep a relation of a cell's own numbers and others do not.
    Relation,
    /// The run is rejected.
    Reject,
}

impl Weight {
    /// The most severe finding for a document, by whether its version is known to keep the exact relations.
    pub const fn severity_max(self, keeps_relations: bool) -> Severity {
        match self {
            Self::Note => Severity::Note,
            Self::Relation if keeps_relations => Severity::Error,
            Self::Review | Self::Relation => Severity::Suspicious,
            Self::Reject => Severity::Error,
        }
    }
}

/// One row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
pub struct CheckInfo {
    pub code: &'static str,
    pub group: Group,
    pub weight: Weight,
    pub title: &'static str,
    pub explanation: &'static str,
}

macro_rules! table {
    ($($group:ident $weight:ident $code:literal $title:literal $explanation:literal;)*) => {
        /// Every code a finding can have.
        pub const CHECKS: &[CheckInfo] =
            &[$(CheckInfo { code: $code, group: Group::$group, weight: Weight::$weight, title: $title, explanation: $explanation }),*];
    };
}

table! {
    Exact Relation "total_mismatch" "The total is not tokens divided by seconds" "The headline of a cell is its output tokens divided by its measured seconds, and all three stand in the document. They must agree to the rounding of the seconds.";
    Exact Relation "per_request_average_mismatch" "The average per request is not the total divided by the requests" "The tool divides the total by the concurrency for this field. The two numbers must agree to the last digit.";
    Exact Review "token_counts_differ" "Two counts of output tokens differ" "A cell keeps its output tokens twice. Where they were counted from the engine's usage reports, the two are the same.";
    Exact Relation "summary_mismatch" "The summary table does not repeat the cells" "The document repeats every total in a table at its end. Each entry must equal its cell, and there is none without a cell.";
    Exact Relation "cell_incomplete" "A measured cell lacks its proof" "This version writes the samples and times behind every speed. A cell without them cannot be recomputed.";
    Exact Relation "percentile_mismatch" "A percentile is not that of the samples" "Every percentile of a cell is computed from the cell's own request samples. Computing it again must give the same number.";
    Exact Review "average_mismatch" "A mean is not that of the samples" "Means of times, speeds and lengths are taken over the cell's own request samples. Taking them again must give the same number.";
    Exact Relation "request_count_mismatch" "A count is not the number of samples" "A cell says how many requests it had and how many were completed. Its list of samples must have as many.";
    Exact Relation "sample_inconsistent" "A request sample contradicts itself" "A stream's speed is one over its time between tokens, and a completed one's latency is the sum of its parts. One of its numbers was changed.";
    Exact Review "stream_outlives_cell" "A stream took longer than its cell" "The tokens of a stream at its time between tokens cannot take longer than the whole cell did. Either is not what was measured.";
    Exact Review "window_exceeds_streams" "The window has more tokens than its streams" "The measured window is a part of the streams' lives. It cannot hold more tokens than all of them together.";
    Exact Review "streams_missing" "A valid cell lacks streams" "In a valid cell every request has been given tokens. This one has samples of fewer streams than requests, so some of them waited.";
    Exact Review "samples_repeated" "Streams are copies of each other" "Times are read from a clock with many digits, so no two streams have the same. These do: they were copied or generated.";
    Exact Relation "gauges_inconsistent" "The scheduler's gauges contradict each other" "Averages, maxima and shares of active and queued requests bound each other. These do not.";
    Exact Review "failed_cell_has_total" "A failed cell has a total" "A cell that failed or looped has no speed in this version. Its row still has one.";
    Exact Relation "flag_mismatch" "A flag does not follow from the gauges" "The tool derives from the scheduler's gauges whether requests queued. The flag in the document says otherwise.";
    Exact Review "worker_count_mismatch" "Workers are missing" "Every request in flight has one worker, which ends with or without an error. Their number must be the concurrency.";
    Exact Review "window_length" "The window is not as long as asked" "The document states how long each measurement takes and how long each window was. They differ by more than a scheduler explains; a run that was ended by hand does that.";
    Exact Relation "window_overrun" "More was measured than the window had" "The measured seconds end with the last token inside the window. They cannot be much more than the window.";
    Exact Review "window_cut_short" "The speed is over a part of the window" "The last token came long before the window ended, so the divisor is too small. Engines that report usage late cause this honestly.";
    Exact Relation "cell_time_sum" "A cell's times do not add up" "Warm-up and window together make a cell's wall time, with some seconds to join its streams. These do not.";
    Exact Review "log_missing" "The event log is missing" "The tool keeps the last eighty lines of its log in the document. Without a finished cell in it the numbers have no second witness.";
    Exact Relation "log_total_mismatch" "The event log shows another total" "The log prints the total of every finished cell with one decimal. It must be the cell's.";
    Exact Relation "log_cell_not_in_results" "The event log shows a cell that was removed" "A line of the log says that a cell was finished. The results do not have it.";
    Exact Relation "cell_not_in_log" "A cell has no line in the event log" "The log has lines before and after, or is complete. The cell was not measured when the document says.";
    Exact Relation "log_contradicts_status" "The event log shows a total for a failed cell" "A cell that failed or was not run has no total in the log. This one has.";
    Exact Relation "log_time_mismatch" "The event log's clock disagrees" "The log's lines have the time of day at which a cell started, opened its window and ended. The document's own seconds are others.";
    Exact Review "log_context_differs" "The prompts were made for another context" "The log says before the first cell how many tokens the prompt of each context was made for. The document calls the context otherwise.";
    Exact Review "log_gap" "The event log has a hole" "One cell starts within moments of the end of the one before. Here is time for a cell where the order has one that is not there.";
    Exact Relation "log_prefill_mismatch" "The event log shows another prefill" "The log prints every prefill rate as a whole number. It must be the row's.";
    Exact Review "log_clock" "The event log's clock is not sound" "The clock of a log runs forward, and the document is saved when it ends. This one does not.";
    Exact Review "kv_budget_mismatch" "The event log shows another KV cache budget" "The log prints the budget by which cells are skipped. The document states another.";
    Exact Review "total_rounded" "A total is a round number" "A total is a quotient of tokens and seconds and has many digits. One with few was typed in or rounded.";
    Exact Review "unexpected_digits" "A number has digits the tool does not write" "Seconds are rounded to six decimals, prefill times to three and rates to none. This number has more.";
    Exact Relation "prefill_rate_mismatch" "Prefill rate and time do not give the prompt" "A prefill rate is the prompt's tokens divided by the time to the first token. The three must agree within their rounding.";
    Tolerance Review "prefill_copies_differ" "A prefill row has two values for one thing" "The client's time and rate stand in a row twice where no server validated them. They must be the same.";
    Exact Relation "prefill_incomplete" "A prefill row lacks its prompt" "This version writes how many tokens the prompt had. Without it the rate cannot be recomputed.";
    Tolerance Review "prompt_length" "A prompt does not have its context's length" "A prompt is made to be about as long as its context. This one was much shorter or longer.";
    Tolerance Review "prefill_cached" "A prefill came from a cache" "The engine says that it had parts of the prompt in its cache. The rate is not that of a new prompt.";
    Tolerance Review "prompt_not_linear" "Prompt lengths are not linear in the contexts" "One tokenizer makes prompts whose lengths grow evenly with the context. These do not.";
    Tolerance Review "prefill_faster_when_longer" "A longer prompt was faster" "Attention makes every further token of a prompt cost more, so the rate falls with length. Twice the rate of a shorter prompt comes from a cache.";
    Structure Review "prefill_row_missing" "A prefill row is missing" "The run measures prefill at every context it decodes and at those it is asked for. A row that must be there is not.";
    Structure Relation "cell_doubled" "A cell or level stands twice" "Every context and concurrency has one cell. This one has two.";
    Structure Review "cell_not_declared" "A cell lies outside the run's own matrix" "The document lists its contexts and concurrency levels. A cell has others.";
    Structure Relation "cell_missing" "A cell is missing without a reason" "Every cell of the matrix is measured unless the KV cache or a limit of the engine forbids it. Nothing explains this gap.";
    Structure Review "levels_dropped" "Whole levels are missing" "An engine with few slots makes the tool drop the levels above them. Nothing in the document says how many slots it had.";
    Structure Review "run_interrupted" "The run ended early" "The cells at the end of the order were not run. What they would have shown is unknown.";
    Structure Note "cells_not_run" "Cells were left out for a stated limit" "The engine's longest context, its slots or the run's plan exclude these cells. That is no fault.";
    Structure Note "cells_failed" "Cells failed" "These cells ended in an error of the engine or the connection. They have no speed.";
    Structure Note "cells_looped" "The model repeated itself" "The tool saw the same text again and again and discarded the cells. They have no speed.";
    Structure Review "cells_skipped" "Cells were skipped by hand" "Somebody pressed a key to leave these cells out. What they would have shown is unknown.";
    Structure Review "plan_skip_unexplained" "The plan left out cells that fit" "A wrapper plans without the cells that exceed the cache, the slots or the longest context. These exceed nothing that it states.";
    Structure Relation "kv_capacity_inconsistent" "No one KV capacity explains the matrix" "Cells that ran need less KV cache than those that could not. Here one that ran needs as much as one that did not.";
    Structure Relation "ran_over_capacity" "A cell ran that would have been skipped" "The tool skips cells that need more than the KV budget. This one was measured all the same.";
    Structure Relation "over_capacity_unexplained" "A cell is called over capacity and is not" "A cell is over capacity when it needs more than the KV budget. This one needs less, or there is no budget.";
    Structure Review "longer_than_model" "A cell is longer than the engine allows" "Context and output together exceed the engine's longest context. Such a cell cannot be measured.";
    Structure Review "arguments_differ" "The tool was started otherwise" "The document repeats the arguments the tool was started with. Its metadata states others.";
    Structure Note "arguments_missing" "The arguments are not there" "The document does not repeat what the tool was started with. Less can be compared.";
    Tolerance Review "streams_and_total" "Streams and total fit badly" "The median speed of the streams times the active requests is usually near the total. Warm-up, speculation and noise move it.";
    Tolerance Note "median_reciprocal" "Median speed and median time are no reciprocals" "The median speed is usually near one over the median time between tokens. Few and uneven samples move it.";
    Tolerance Review "server_tokens_differ" "The engine counted other tokens" "The engine's own counter of generated tokens should agree with the client's count. It does not.";
    Tolerance Review "usage_overreported" "The tool over-reports these cells" "The engine reports usage only when a request ends, so whole answers were counted that began before the window. The speed is too high, honestly so.";
    Physical Review "too_fast" "Faster than any engine" "No engine gives one stream a token in less than a fifth of a millisecond. These were not made by one.";
    Physical Note "physics_unchecked" "Not compared with the hardware's limits" "The claimed model is not in the catalog, or its name fits several. Its speed was not compared with what the hardware can do.";
    Physical Review "decode_above_bandwidth" "Decode faster than the memory can be read" "Every step reads the active weights, and the cache of every request, from memory at most at its bandwidth. This total would need more, with room for what the claim leaves open.";
    Physical Review "speculation_unseen" "Speculation that the stream does not show" "Only with several tokens a step could the claimed hardware be this fast, and nothing that arrived shows several. Engines that send the tokens of a step one by one look like this honestly, so a person looks.";
    Physical Review "decode_above_compute" "Decode faster than the hardware can compute" "Every token costs two operations for each active parameter. This total needs more than the claimed hardware's peak.";
    Physical Review "itl_below_floor" "Tokens follow each other faster than the weights can be read" "A stream's next token needs one reading of the active weights. The median time between tokens is shorter than that takes on the claimed hardware.";
    Physical Review "prefill_above_compute" "Prefill faster than the hardware can compute" "Every prompt token costs two operations for each active parameter. This rate needs more than the claimed hardware's peak: the prompt was cached, or the hardware is another.";
    Physical Review "far_below_hardware" "Far slower than the hardware" "Every cell is far below what this hardware is expected to do with this model, as the figures of a slower part under its name would be. Offloading, debug modes and slow engines explain it honestly, so it is a note unless prefill is as slow and nothing of that kind is stated.";
    Physical Review "weights_exceed_memory" "The weights do not fit" "The model's weights at the claimed quantization are larger than all memory of the claimed hardware. Unless a part is kept elsewhere, it cannot have run there.";
    Physical Note "cache_exceeds_memory" "Weights and cache do not fit together" "Weights and the KV cache of the largest valid cell are larger than all memory of the claimed hardware. Shared prefixes and sparse caches do that honestly.";
    Physical Review "gpu_idle" "The GPU was idle" "The telemetry of a measured cell shows a GPU that did nothing. Something else made the tokens, or the engine ran on another machine.";
    Physical Review "memory_below_weights" "Less memory in use than the weights need" "The telemetry of a measured cell shows less GPU memory in use than the model's weights take. Another model was served, or the engine ran elsewhere.";
    Physical Review "power_above_limit" "More power than the limit" "The mean power of a measured cell is well above the power limit that the same telemetry states. One of the two was changed.";
    Physical Note "power_limit_unusual" "An unusual power limit" "The power limit in the telemetry is far from what this hardware is sold with. Modified firmware does that honestly.";
    Tolerance Review "server_throughput_mismatch" "The engine's throughput is not its tokens over time" "The server's throughput is its token count divided by its window. These disagree.";
    Tolerance Note "steps_mismatch" "Steps and tokens per step do not give the total" "With speculation the total is engine steps per second times tokens accepted per step. These are only near it.";
    Tolerance Note "lockstep" "Tokens do not come in steps of the batch" "Without speculation every step gives each active request one token. Here the counts are seldom a multiple of the requests.";
    Tolerance Note "total_falls_with_concurrency" "The total falls with more requests" "More requests usually give a higher total until a plateau. Some engines and noise break it.";
    Tolerance Review "total_rises_with_context" "The total rises with a longer context" "A longer context usually costs speed. Noise and warm-up break it.";
    Tolerance Review "speed_rises_with_concurrency" "Each request is faster in company" "Requests share the engine, so more of them make each slower or leave it as it is. Here each is clearly faster than with fewer.";
    Tolerance Review "speed_flat" "Load costs nothing" "A long context and many requests slow every engine down. Here the speed of a request is the same in every cell, as an echo would give it.";
    Document Note "chunks_counted" "Chunks were counted as tokens" "The engine streams without usage reports, so the tool counted chunks. Under speculation that is too few.";
    Document Review "server_counter_only" "The speed is the server's own word" "The client could not count tokens and took the server's counter. Nothing that was received proves it.";
    Document Review "unknown_token_source" "Unknown source of the token count" "The tool names where its token count comes from. This name is none of its own.";
    Document Review "version_implausible" "The version cannot be right" "The document names a version that this tool has not had, or one that could not write these fields. A version string is cheap to edit.";
    Document Review "version_missing" "The version is missing" "The tool that writes such cells writes its version too. It is not there.";
    Document Note "version_unknown" "The version is newer than the checks" "The checks were made for older documents. Fields they do not know are ignored.";
    Document Note "version_differs" "Two versions are named" "The metadata and the startup block name different versions. Wrappers do this honestly.";
    Document Review "version_uncheckable" "The version holds nothing to check" "Documents of this age have no samples, windows or token counts. Their speeds cannot be recomputed.";
    Document Review "timestamp_malformed" "The time of the run cannot be read" "The tool writes the local time at which it saved the document. This is none.";
    Document Review "timestamp_future" "The run ends after its upload" "The document was saved later than it was uploaded, by more than any time zone explains. A clock or a number is wrong.";
    Document Note "run_old" "The run is old" "The document was saved long before it was uploaded. The machine may have changed since.";
    Document Review "no_valid_cell" "Nothing was validly measured" "Not one decode cell is valid, so there is no speed to stand for. A dead server or a prefill-only run looks like this honestly.";
    Document Review "forced_tokens" "The tokens were forced" "The engine was made to give fixed tokens. That is a diagnostic and no natural throughput.";
    Document Note "no_metrics" "The engine gave no metrics" "Queueing and active requests could not be seen. A queued cell looks valid.";
    Document Note "speculation" "Speculation was used" "The engine guessed tokens ahead. Its speed depends on how well it guessed this text.";
    Document Review "wrapper_not_complete" "The wrapper says the run is not complete" "The wrapper marks its run as failed or interrupted. What is missing is unknown.";
    Document Note "profile_quick" "A quick profile was used" "The wrapper's quick profile measures little. It is kept out of statistics.";
    Document Review "integrity_modified" "The benchmark's image was modified" "The wrapper compared the files of its image and found changes. The benchmark may not be the stock one.";
    Hardware Review "hardware_unseen" "The document shows no GPU" "Nothing in the document names the hardware. It is the uploader's word until the engine is measured.";
    Hardware Note "hardware_ambiguous" "The claimed hardware is ambiguous" "The name fits more than one hardware model. The memory size may decide.";
    Hardware Note "hardware_unknown" "The hardware is not in the catalog" "The name is none of the catalog's. It can be compared with nothing.";
    Hardware Reject "gpu_count_differs" "Another number of GPUs" "The document shows more or fewer GPUs than are claimed. The speed is not that of the claimed machine.";
    Hardware Reject "gpu_differs" "Another GPU" "The document names another GPU than the one claimed. The speed is not that of the claimed machine.";
    Hardware Reject "gpu_memory_differs" "Another amount of GPU memory" "The document or the catalog knows another memory size than the one claimed. The hardware is not what it is said to be.";
    Hardware Review "telemetry_inconsistent" "The telemetry contradicts itself" "Every cell's telemetry is of the same GPUs, which are listed once. Counts differ, or more memory or time is in use than there is.";
    Hardware Review "not_a_gpu" "No GPU" "The claimed hardware is a processor under a GPU's kind. The claim contradicts itself.";
    Hardware Review "model_differs" "Another model" "The document names another model than the one claimed, and the catalog knows both. The speed is not that of the claimed model.";
    Hardware Review "engine_differs" "Another engine" "The tool recognised another engine than the one claimed. The speed is not that of the claimed engine.";
    Hardware Note "driver_differs" "Another driver" "The document shows another driver version than is claimed. It may have been updated since.";
    Challenge Reject "challenge_document_reused" "The answer was used before" "These bytes were uploaded before. A challenge wants a run of its own.";
    Challenge Reject "challenge_run_reused" "The run was used before" "The run's own random word was seen in another upload. A challenge wants a run of its own.";
    Challenge Reject "challenge_expired" "The challenge had expired" "The answer came after the challenge's time. Ask for a new one.";
    Challenge Reject "challenge_settings_differ" "Other settings than asked" "The challenge fixes time per measurement, maximum output and decode test. The run used others.";
    Challenge Reject "challenge_uncheckable" "The tool is too old for a challenge" "Documents of this version hold nothing that proves a speed. Use the current tool.";
    Challenge Reject "challenge_model_differs" "Another model than asked" "The challenge fixes the model that the engine serves. The run measured another.";
    Challenge Reject "challenge_cell_missing" "Asked cells are missing" "Every asked cell is measured, over capacity by one KV capacity, or dropped by a limit of the engine. These are none of that.";
    Challenge Review "challenge_capacity_differs" "Skipped by a smaller cache than the engine has" "The run skipped cells by a KV budget well below what the engine says it has. Slow cells may have been avoided.";
    Challenge Review "challenge_prefill_missing" "Asked prefill rows are missing" "The challenge asks for prefill at these contexts. The document does not have them.";
    Challenge Reject "challenge_time" "The run does not fit into the time" "The cells took longer together than the time between challenge and upload. They were measured before.";
    Challenge Reject "challenge_timestamp" "The run is from another time" "The document was not saved between challenge and upload, in any time zone. It was measured at another time.";
    Duplicate Review "duplicate_document" "A copy of another's document" "The same document was uploaded by another account or for another machine before. Only the newcomer is reviewed.";
    Duplicate Review "near_duplicate" "Nearly a copy of another's run" "At least half of the cells have the tokens and seconds of another's run, or long windows differ from them by less than two measurements of one machine do. Chance does not do that.";
    Duplicate Reject "run_replayed" "The run was uploaded before" "The benchmark gives each run a random word or identifier, and this one's was uploaded before. An answer to a challenge wants a run of its own; another upload of it is looked at by a person.";
    Duplicate Review "device_seen_elsewhere" "A GPU of another host" "A device identifier of this document belongs to another host's run. Only the newcomer is reviewed.";
}

/// The row of a code.
pub fn info(code: &str) -> Option<&'static CheckInfo> {
    CHECKS.iter().find(|check| check.code == code)
}
