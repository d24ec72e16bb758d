//! The rules of ARCHITECTURE.md that can be read off the text of `src/`: layers, who may name which library, sizes, clocks, floats.
//!
//! `source` turns a file into tokens without comments, literals and test modules; the rules here look at tokens and paths only.

mod source;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::LazyLock;

use source::{Path as CodePath, Source};

/// Later ones may use earlier ones.
const DOMAINS: [&str; 11] =
    ["identity", "webhooks", "ledger", "catalog", "machines", "benchmarks", "market", "rentals", "billing", "endpoint", "admin"];
/// What another domain may look into; everything else of a domain is reached through what its `mod.rs` re-exports.
const SURFACE: [&str; 4] = ["service", "model", "extract", "scope"];

const FILE_LINES_MAX: usize = 600;
const FUNCTION_LINES_MAX: usize = 70;
const HANDLER_LINES_MAX: usize = 40;

/// The layer of a top-level module: imports go to the same or a lower number. `None` for a name that is not a module (a macro, a re-export).
fn layer(module: &str) -> Option<u8> {
    match module {
        "main" | "cli" => Some(5),
        "app" | "demo" | "routes" | "worker" | "openapi" => Some(4),
        _ if DOMAINS.contains(&module) => Some(3),
        "ctx" | "web" | "jobs" | "engines" | "measure" => Some(2),
        "db" | "integrations" => Some(1),
        "base" | "config" => Some(0),
        _ => None,
    }
}

fn rank(domain: &str) -> Option<usize> {
    DOMAINS.iter().position(|known| *known == domain)
}

static SOURCES: LazyLock<Vec<Source>> = LazyLock::new(|| source::all("src"));

/// Collects what breaks a rule, so that one run shows all of it.
fn check(rule: impl Fn(&Source) -> Vec<String>) {
    let sources = &*SOURCES;
    assert!(sources.len() > 30, "the sources were not found");
    let broken: Vec<String> =
        sources.iter().flat_map(|source| rule(source).into_iter().map(|what| format!("{}: {what}", source.path))).collect();
    assert!(broken.is_empty(), "\n{}", broken.join("\n"));
}

#[test]
fn every_top_level_module_has_a_layer() {
    let lib = SOURCES.iter().find(|source| source.path == "lib.rs").unwrap();
    let modules = lib.tokens.windows(2).filter(|pair| pair[0].text == "mod").map(|pair| pair[1].text.as_str());
    let unplaced: Vec<&str> = modules.filter(|module| layer(module).is_none()).collect();
    assert!(unplaced.is_empty(), "give these a layer here and in ARCHITECTURE.md: {unplaced:?}");
}

#[test]
fn imports_go_downward() {
    let modules = existing_modules();
    check(|source| import_faults(source, &modules));
}

fn import_faults(source: &Source, modules: &BTreeSet<String>) -> Vec<String> {
    let here = source.top();
    let Some(layer_here) = layer(here) else { return Vec::new() };
    let mut faults = Vec::new();
    for path in source.crate_paths() {
        let there = path.segments[0].as_str();
        let Some(layer_there) = layer(there).filter(|_| there != here) else { continue };
        let sideways = layer_there == layer_here
            && match (rank(here), rank(there)) {
                (Some(here), Some(there)) => here < there,
                _ => here == "base",
            };
        if layer_there > layer_here || sideways {
            faults.push(format!("line {}: `{path}` is above `{here}`", path.line));
        }
        if let Some(fault) = surface_fault(here, &path, modules) {
            faults.push(fault);
        }
    }
    faults
}

/// Another domain's insides: its queries for nobody, its handlers, pages and jobs for the composition only.
fn surface_fault(here: &str, path: &CodePath, modules: &BTreeSet<String>) -> Option<String> {
    let [domain, module, ..] = path.segments.as_slice() else { return None };
    rank(domain)?;
    if !modules.contains(&format!("{domain}::{module}")) {
        return None;
    }
    let allowed = match rank(here) {
        Some(_) => SURFACE.contains(&module.as_str()),
        None => module != "queries",
    };
    (!allowed).then(|| format!("line {}: `{path}` is no part of what {domain}/mod.rs offers", path.line))
}

/// `domain::module` for every file and folder in a domain.
fn existing_modules() -> BTreeSet<String> {
    SOURCES.iter().filter(|source| source.module.len() > 1).map(|source| format!("{}::{}", source.module[0], source.module[1])).collect()
}

/// `module` is a file `module.rs` or a folder `module/`, at any depth.
fn is_in(source: &Source, module: &str) -> bool {
    source.module.iter().any(|part| part == module)
}

#[test]
fn sql_stays_in_queries_and_models() {
    check(|source| {
        if ["queries", "model", "db", "jobs"].iter().any(|module| is_in(source, module)) {
            return Vec::new();
        }
        let mut faults = source.uses_of(&["diesel", "diesel_async", "diesel_migrations", "tokio_postgres"]);
        faults.extend(
            source
                .crate_paths()
                .iter()
                .filter(|path| path.starts_with(&["db", "schema"]))
                .map(|path| format!("line {}: `{path}`", path.line)),
        );
        faults
    });
}

#[test]
fn http_stays_in_handlers_and_the_web_toolkit() {
    check(|source| {
        let home = ["web", "api", "pages", "routes", "app", "openapi"].iter().any(|module| is_in(source, module))
            || source.path == "identity/extract.rs"
            || source.path.starts_with("measure/simulated/");
        if home { Vec::new() } else { source.uses_of(&["actix_web", "actix_http", "actix_rt", "actix_cors"]) }
    });
}

#[test]
fn stripe_stays_in_billing() {
    check(|source| {
        // `ctx` holds the client, as it holds every other; nobody else may use it.
        let home = source.path.starts_with("integrations/") || source.path.starts_with("billing/") || source.path == "ctx.rs";
        if home || layer(source.top()) == Some(4) {
            return Vec::new();
        }
        let mut faults = source.uses_of(&[
            "stripe",
            "stripe_billing",
            "stripe_checkout",
            "stripe_client_core",
            "stripe_core",
            "stripe_payment",
            "stripe_shared",
            "stripe_types",
        ]);
        faults.extend(
            source
                .crate_paths()
                .iter()
                .filter(|path| path.starts_with(&["integrations", "stripe"]))
                .map(|path| format!("line {}: `{path}`", path.line)),
        );
        faults
    });
}

#[test]
fn time_is_read_in_one_place() {
    check(|source| {
        if source.path == "base/clock.rs" {
            return Vec::new();
        }
        ["Utc::now", "Local::now", "SystemTime::now", "Instant::now"].iter().flat_map(|call| source.finds(call)).collect()
    });
}

#[test]
fn the_environment_is_read_in_one_place() {
    check(|source| {
        if source.top() == "config" {
            return Vec::new();
        }
        let named = |path: &CodePath| {
            (path.starts_with(&["std", "env"]) && !path.starts_with(&["std", "env", "consts"])) || path.starts_with(&["env"])
        };
        source.paths().iter().filter(|path| named(path)).map(|path| format!("line {}: `{path}`", path.line)).collect()
    });
}

/// Money is integers of micro-dollars: a float or an unchecked cast loses some of it without a word.
#[test]
fn money_knows_no_floats_and_no_casts() {
    check(|source| {
        let words = ["money", "price", "prices", "meter", "metering", "statement", "statements", "fees"];
        let about_money = ["ledger", "billing"].contains(&source.top()) || source.module.iter().any(|part| words.contains(&part.as_str()));
        if about_money { money_faults(source) } else { Vec::new() }
    });
}

fn money_faults(source: &Source) -> Vec<String> {
    let numbers = ["i8", "i16", "i32", "i64", "i128", "u8", "u16", "u32", "u64", "u128", "usize", "isize", "f32", "f64"];
    let mut faults = Vec::new();
    for (index, token) in source.tokens.iter().enumerate() {
        let next = source.tokens.get(index + 1).map_or("", |token| token.text.as_str());
        if token.text == "f32" || token.text == "f64" || token.is_float() {
            faults.push(format!("line {}: the float `{}`", token.line, token.text));
        } else if token.text == "as" && numbers.contains(&next) {
            faults.push(format!("line {}: `as {next}`: use From or TryFrom", token.line));
        }
    }
    faults
}

#[test]
fn nothing_panics_on_purpose() {
    check(panic_faults);
}

fn panic_faults(source: &Source) -> Vec<String> {
    let methods = [".unwrap(", ".unwrap_err(", ".expect(", ".expect_err("];
    let macros = ["panic!", "todo!", "dbg!", "unimplemented!", "unreachable!"];
    methods.iter().chain(&macros).flat_map(|text| source.finds(text)).collect()
}

#[test]
fn files_and_functions_stay_small() {
    check(|source| {
        let mut faults = Vec::new();
        if source.lines > FILE_LINES_MAX && source.path != "db/schema.rs" {
            faults.push(format!("{} lines, at most {FILE_LINES_MAX}", source.lines));
        }
        let bound = if is_in(source, "api") || is_in(source, "pages") { HANDLER_LINES_MAX } else { FUNCTION_LINES_MAX };
        let long = source.functions().into_iter().filter(|function| function.lines > bound);
        faults.extend(
            long.map(|function| format!("line {}: `{}` has {} lines, at most {bound}", function.line, function.name, function.lines)),
        );
        faults
    });
}

#[test]
fn every_module_says_what_it_is() {
    check(|source| if source.begins_with_doc { Vec::new() } else { vec!["does not begin with `//!`".to_owned()] });
}

#[test]
fn tests_are_held_to_the_same_size_and_say_what_they_are() {
    let tests = source::all("tests/it");
    let faulty = tests.iter().filter(|source| source.lines > FILE_LINES_MAX || !source.begins_with_doc).map(|source| &source.path);
    let faulty: Vec<_> = faulty.collect();
    assert!(tests.len() > 10 && faulty.is_empty(), "too long, or without `//!`: {faulty:?}");
}

/// Programs under `examples` are no tests: they do not panic on purpose either, and read one clock of their own.
#[test]
fn examples_are_held_to_the_rules_of_programs() {
    let examples = source::all("examples");
    let faults = examples.iter().flat_map(|source| {
        let mut faults = panic_faults(source);
        if source.lines > FILE_LINES_MAX || !source.begins_with_doc {
            faults.push(format!("{} lines, at most {FILE_LINES_MAX}; begins with `//!`: {}", source.lines, source.begins_with_doc));
        }
        let long = source.functions().into_iter().filter(|function| function.lines > FUNCTION_LINES_MAX);
        faults.extend(long.map(|function| format!("`{}` has {} lines, at most {FUNCTION_LINES_MAX}", function.name, function.lines)));
        if !source.path.ends_with("/clock.rs") {
            faults.extend(["Utc::now", "SystemTime::now"].iter().flat_map(|call| source.finds(call)));
        }
        faults.into_iter().map(|what| format!("{}: {what}", source.path)).collect::<Vec<_>>()
    });
    let faults: Vec<String> = faults.collect();
    assert!(examples.len() > 10 && faults.is_empty(), "\n{}", faults.join("\n"));
}

/// Folders have a `mod.rs`; a file beside a folder of its name would be a second home for one module.
#[test]
fn folders_have_a_mod_rs() {
    check(|source| {
        let beside = Path::new("src").join(source.path.trim_end_matches(".rs"));
        if beside.is_dir() { vec![format!("move it to {}/mod.rs", beside.display())] } else { Vec::new() }
    });
}

mod selftest {
    //! The rules see what they should, and nothing else.

    use super::*;

    fn faults(path: &str, text: &str) -> Vec<String> {
        let modules = ["ledger::queries", "ledger::service", "ledger::transfer", "identity::api"].map(str::to_owned).into();
        import_faults(&Source::parse(path, text), &modules)
    }

    #[test]
    fn upward_and_inward_imports_are_seen() {
        assert_eq!(faults("market/service.rs", "use crate::{base::Id, ledger::{self, service::post}, ctx::Ctx};"), Vec::<String>::new());
        assert_eq!(faults("ledger/service.rs", "use crate::market::Listing;").len(), 1);
        assert_eq!(faults("ledger/service.rs", "use crate::{db, market::{a::B, c}};").len(), 2);
        assert_eq!(faults("web/page.rs", "fn f() { crate::identity::whoami() }").len(), 1);
        assert_eq!(faults("market/service.rs", "use crate::ledger::queries;").len(), 1);
        assert_eq!(faults("market/service.rs", "use crate::ledger::{transfer::Post, Account};").len(), 1);
        assert_eq!(faults("market/service.rs", "fn f() { crate::ledger::queries::x() }").len(), 1);
        assert_eq!(faults("routes.rs", "use crate::identity::api;").len(), 0);
        assert_eq!(faults("ledger/mod.rs", "use super::market;").len(), 1);
        assert_eq!(faults("ledger/deep/er.rs", "use super::super::super::market;").len(), 1);
        assert_eq!(faults("ledger/service.rs", "use super::queries; // crate::market\nconst A: &str = \"crate::market\";").len(), 0);
        assert_eq!(faults("ledger/service.rs", "#[cfg(test)]\nmod tests { use crate::market::X; }").len(), 0);
    }

    #[test]
    fn floats_casts_and_panics_are_seen() {
        let money = |text: &str| money_faults(&Source::parse("ledger/service.rs", text)).len();
        assert_eq!(money("let x: f64 = 1.5; let y = 2 as i64; let z = t.0; let r = 1..2; let h = 0x1f; let e = 1e3;"), 4);
        let panics = |text: &str| panic_faults(&Source::parse("ledger/service.rs", text)).len();
        assert_eq!(panics("a.unwrap(); b .expect(\"x\"); panic!(\"\"); c.unwrap_or(1); #[expect(dead_code)] fn f() {}"), 3);
        assert_eq!(panics("const TEXT: &str = r#\"a.unwrap() \"#; // todo!()\n/* dbg!( */"), 0);
    }

    #[test]
    fn functions_are_measured_from_signature_to_brace() {
        let source = Source::parse(
            "a.rs",
            "fn one() {}\nimpl A {\n    async fn two<'a>(\n        x: [u8; 3],\n    ) -> B where T: C<{ 1 }> {\n        if x { '{' }\n    }\n}\ntrait T { fn three(); }",
        );
        let found: Vec<(String, usize)> = source.functions().into_iter().map(|function| (function.name, function.lines)).collect();
        assert_eq!(found, [("one".to_owned(), 1), ("two".to_owned(), 5)]);
    }
}
