//! What the papers say of settings, dependencies and each other is what there is.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use clap::{CommandFactory, Parser};
use rigmark::config::{LogArgs, ServeArgs};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn text(path: impl AsRef<Path>) -> String {
    let path = root().join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The first cells of a paper's tables, each split at commas and freed of backquotes.
fn first_cells(paper: &str) -> BTreeSet<String> {
    let rows = paper.lines().filter_map(|line| line.strip_prefix("| ")).filter_map(|row| row.split(" |").next());
    rows.flat_map(|cell| cell.split(", ")).map(|name| name.trim_matches('`').to_owned()).collect()
}

#[derive(Parser)]
struct Serve {
    #[command(flatten)]
    serve: ServeArgs,
    #[command(flatten)]
    log: LogArgs,
}

#[test]
fn every_setting_is_in_the_configuration_paper_with_its_default() {
    let paper = text("docs/configuration.md");
    let rows = first_cells(&paper);
    let command = Serve::command();
    let mut settings = BTreeSet::from(["RIGMARK_API_KEY".to_owned()]);
    for argument in command.get_arguments() {
        let Some(variable) = argument.get_env() else { continue };
        let variable = variable.to_string_lossy().into_owned();
        for default in argument.get_default_values() {
            let row = format!("| `{variable}` | `{}` |", default.to_string_lossy());
            assert!(paper.contains(&row) || default == "false", "docs/configuration.md lacks the row {row}");
        }
        settings.insert(variable);
    }
    let listed: BTreeSet<String> = rows.into_iter().filter(|name| name.chars().all(|c| c.is_ascii_uppercase() || c == '_')).collect();
    assert_eq!(settings, listed);
}

#[test]
fn every_dependency_has_its_reason() {
    let manifest: Vec<String> = text("Cargo.toml").lines().map(str::to_owned).collect();
    let from = manifest.iter().position(|line| line == "[dependencies]").unwrap();
    let section = manifest[from + 1..].iter().take_while(|line| !line.starts_with('['));
    let dependencies: BTreeSet<String> = section.filter_map(|line| line.split_once(" = ")).map(|(name, _)| name.to_owned()).collect();
    let mut listed = first_cells(&text("docs/dependencies.md"));
    listed.remove("crate");
    assert!(dependencies.len() > 20);
    assert_eq!(dependencies, listed);
}

/// Papers at the top and in `docs`.
fn papers() -> Vec<PathBuf> {
    let read = |folder: PathBuf| std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let files = read(root().to_owned()).chain(read(root().join("docs"))).chain(read(root().join("data")));
    files.filter(|path| path.extension().is_some_and(|kind| kind == "md")).collect()
}

#[test]
fn links_between_papers_lead_somewhere() {
    let mut checked = 0;
    for paper in papers() {
        let content = text(&paper);
        for (start, _) in content.match_indices("](") {
            let target = content[start + 2..].split(')').next().unwrap();
            if target.contains("://") || target.starts_with('#') {
                continue;
            }
            let file = paper.parent().unwrap().join(target.split('#').next().unwrap());
            assert!(file.exists(), "{}: {target}", paper.display());
            checked += 1;
        }
    }
    assert!(checked > 5, "{checked}");
}
