//! Which version wrote a document, by its own word and by its shape, and so which relations it must keep.
//!
//! A version string is cheap to edit. The shape of the cells says what the tool could do, so the stricter of the two decides.

use super::Severity;
use crate::benchmarks::document::{Document, Version};

/// First version with the measured window as its denominator and its wall time in the file.
pub(crate) const EXACT_SINCE: (u32, u32, u32) = (0, 4, 16);
const WINDOW_SINCE: (u32, u32, u32) = (0, 4, 0);
/// First version that may write resume checkpoints.
const RESUMES_SINCE: (u32, u32, u32) = (0, 4, 29);
/// The newest minor version whose documents have been seen.
pub(crate) const KNOWN_MINOR_MAX: u32 = 8;
const PLAUSIBLE_MAJOR_MAX: u32 = 2;
const PLAUSIBLE_PART_MAX: u32 = 200;
const PRE_RELEASES: [&str; 7] = ["dev", "rc", "post", "a", "b", "alpha", "beta"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// No measured window, no samples: nothing to recompute (0.3 and before).
    Uncheckable,
    /// A window, but not its wall time (0.4.0 to 0.4.16).
    Windowed,
    Full,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Era {
    pub shape: Shape,
    pub parts: Option<(u32, u32, u32)>,
}

impl Era {
    pub fn of(document: &Document) -> Self {
        let cells = || document.cells.iter().chain(&document.burst_cells);
        let shape = if cells().any(|c| c.measurement_wall_seconds.is_some()) {
            Shape::Full
        } else if cells().any(|c| c.measurement_seconds.is_some() || c.samples.is_some() || c.aggregate_source.is_some()) {
            Shape::Windowed
        } else {
            Shape::Uncheckable
        };
        let version = document.version.as_ref();
        Self { shape, parts: version.and_then(|v| v.parts) }
    }

    /// Errors for the versions that are known to keep the relations, by word or by shape; newer and unknown ones may have changed.
    pub fn exact_severity(self) -> Severity {
        match self.parts {
            Some((0, minor, _)) if minor > KNOWN_MINOR_MAX => Severity::Suspicious,
            Some((major, ..)) if major > 0 => Severity::Suspicious,
            Some(parts) if parts >= EXACT_SINCE => Severity::Error,
            _ if self.shape == Shape::Full => Severity::Error,
            _ => Severity::Suspicious,
        }
    }

    /// Whether the version belongs to a tool that writes the window's fields.
    pub fn must_have_window(self) -> bool {
        self.shape != Shape::Uncheckable || self.parts.is_some_and(|parts| parts >= WINDOW_SINCE)
    }

    pub fn must_have_everything(self) -> bool {
        self.shape == Shape::Full || self.parts.is_some_and(|parts| parts >= EXACT_SINCE)
    }

    /// Whether a run may have been resumed: the log then has the last session only.
    pub fn may_be_resumed(self) -> bool {
        self.parts.is_none_or(|parts| parts >= RESUMES_SINCE)
    }

    /// Newer than any document seen.
    pub fn is_unknown(self) -> bool {
        self.parts.is_some_and(|(major, minor, _)| major > 0 || minor > KNOWN_MINOR_MAX)
    }

    /// Fields that the stated version could not have written.
    pub fn contradicts_shape(self) -> bool {
        self.parts.is_some_and(|parts| match self.shape {
            Shape::Full => parts < EXACT_SINCE,
            Shape::Windowed => parts < WINDOW_SINCE,
            Shape::Uncheckable => false,
        })
    }
}

/// Numbers and points, and at most the name of a pre-release: nothing that somebody made up.
fn is_well_formed(text: &str) -> bool {
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let (core, suffix) = text.split_at(end);
    let name = suffix.trim_start_matches(['-', '+']).trim_end_matches(|c: char| c.is_ascii_digit());
    !core.is_empty() && (suffix.is_empty() || PRE_RELEASES.contains(&name))
}

/// Whether a version string can be one of this tool at all.
pub(crate) fn is_plausible(version: &Version) -> bool {
    is_well_formed(&version.text)
        && version.parts.is_some_and(|(major, minor, patch)| {
            major <= PLAUSIBLE_MAJOR_MAX && minor <= PLAUSIBLE_PART_MAX && patch <= PLAUSIBLE_PART_MAX && (major, minor, patch) != (0, 0, 0)
        })
}
