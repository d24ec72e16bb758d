//! Who is in the demo and what they have. Data only.

/// The password of every demo account. It opens nothing but a sandbox that listens on this machine alone.
pub const PASSWORD: &str = "rigmark-demo";

/// A demo account.
#[derive(Debug, Clone, Copy)]
pub struct Person {
    pub handle: &'static str,
    pub display_name: &'static str,
    /// For the list of accounts.
    pub part: &'static str,
}

impl Person {
    /// The address that makes the account the demo's: no mail is ever sent there (`.example` is nobody's).
    pub fn email(&self) -> String {
        format!("{}@demo.example", self.handle)
    }
}

/// A host with one machine, whose engine is a simulated one.
#[derive(Debug, Clone, Copy)]
pub struct Host {
    pub person: Person,
    /// Unique in the demo: engines are remembered by it.
    pub machine: &'static str,
    /// Slug of the hardware model (data/gpus.csv): the machine's GPU, and how fast its engine is.
    pub hardware: &'static str,
    pub region: &'static str,
    pub cpu: &'static str,
    pub ram_gib: u32,
    /// Name under which the engine serves the model.
    pub model: &'static str,
    pub quantization: &'static str,
    pub price_per_hour: &'static str,
    pub min_hours: u32,
    pub description: &'static str,
}

/// Uploads the reference run.
pub const AUTHOR: Person = Person { handle: "sandberg", display_name: "Sandberg", part: "uploaded the reference run" };

/// Has credit and two rentals: one on the first host's machine that has ended, one on the second's that runs.
pub const RENTER: Person = Person { handle: "harbor", display_name: "Harbor Analytics", part: "renter" };

const NEMOTRON: &str = "cyankiwi/Nemotron-Cascade-2-30B-A3B-AWQ-4bit";

pub const HOSTS: [Host; 4] = [
    Host {
        person: Person { handle: "fjordrack", display_name: "Fjordrack", part: "host" },
        machine: "garage-1",
        hardware: "rtx-3090",
        region: "no",
        cpu: "AMD Ryzen 9 5900X (12C)",
        ram_gib: 64,
        model: NEMOTRON,
        quantization: "awq-4bit",
        price_per_hour: "0.22",
        min_hours: 1,
        description: "Demo listing; the engine is a simulated one. A single RTX 3090 in a garage with cheap water power.",
    },
    Host {
        person: Person { handle: "northlake", display_name: "Northlake Compute", part: "host" },
        machine: "lake-7",
        hardware: "rtx-4090",
        region: "us-mi",
        cpu: "AMD Ryzen 9 7950X (16C)",
        ram_gib: 128,
        model: NEMOTRON,
        quantization: "awq-4bit",
        price_per_hour: "0.39",
        min_hours: 0,
        description: "Demo listing; the engine is a simulated one. An RTX 4090 workstation, billed by the second.",
    },
    Host {
        person: Person { handle: "kitahama", display_name: "Kitahama GPU", part: "host" },
        machine: "kita-2",
        hardware: "rtx-5090",
        region: "jp",
        cpu: "AMD Ryzen 9 9950X (16C)",
        ram_gib: 96,
        model: NEMOTRON,
        quantization: "awq-4bit",
        price_per_hour: "0.58",
        min_hours: 0,
        description: "Demo listing; the engine is a simulated one. An RTX 5090 with 32 GiB for long contexts.",
    },
    Host {
        person: Person { handle: "bergwerk", display_name: "Bergwerk Rechenzentrum", part: "host" },
        machine: "schacht-4",
        hardware: "h100-sxm5-80gb",
        region: "de-sn",
        cpu: "Intel Xeon Platinum 8480+ (56C)",
        ram_gib: 512,
        model: "openai/gpt-oss-20b",
        quantization: "mxfp4",
        price_per_hour: "2.10",
        min_hours: 1,
        description: "Demo listing; the engine is a simulated one. One H100 SXM in a former mine.",
    },
];

/// Play money of the renter.
pub const CREDIT: &str = "100.00";
/// Length of the rental that runs.
pub const RENTAL_HOURS: u32 = 72;

/// The reference run: a real document of the benchmark, gzipped, and what its uploader adds.
pub const REFERENCE_DOCUMENT_GZIP: &[u8] = include_bytes!("../../data/demo/reference-run.json.gz");
pub const REFERENCE_CLAIM: &str = include_str!("../../data/demo/reference-run.meta.json");
