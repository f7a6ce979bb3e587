//! Tests the README and the docs: commands run as written and print the quoted output, links and file names exist.
//!
//! | Fence of a block | What the test does with it |
//! |---|---|
//! | `sh` | runs it as a script, with the command built for this test in place of `cargo run --release --` |
//! | `sh gui` | does not run it: it needs a screen, or a tool that may be missing |
//! | `sh slow` | does not run it: it takes minutes |
//! | `sh gpu` | does not run it: it needs a real GPU |
//! | `output` | looks for its lines, in order, in what the block before it printed; `...` stands for lines that are left out |
//! | a language and a name | writes a file of that name before the first script |
//!
//! A page's scripts run in order in a copy of the repository, so they write nothing into the repository. Of the README only lines that
//! begin with `cargo run --release -- ` run; `.ci/run` runs its other commands.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::thread;

const RUN: &str = "cargo run --release -- ";

/// Folders whose pages are tested.
const FOLDERS: [&str; 4] = ["testbench/docs", "waveforms/docs", "components/docs", "hw/docs"];

/// Folders that are not copied: no page reads them.
const NOT_COPIED: [&str; 3] = ["target", "src", "benches"];

/// A page in Markdown.
struct Page {
    /// Path from the root of the repository.
    path: PathBuf,
    text: String,
}

/// A fenced block of a page.
#[derive(Clone, Copy)]
struct Block<'a> {
    /// Number of the line with the fence, from 1.
    line: usize,
    /// The text after the fence.
    info: &'a str,
    text: &'a str,
}

impl Page {
    fn read(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        let text = fs::read_to_string(root().join(&path)).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        Page { path, text }
    }

    fn is_readme(&self) -> bool {
        self.path == Path::new("README.md")
    }

    /// The fenced blocks in order.
    fn blocks(&self) -> Vec<Block<'_>> {
        let fences: Vec<_> = self
            .text
            .match_indices("```")
            .filter(|(at, _)| self.begins_line(*at))
            .collect();
        let pairs = fences.chunks_exact(2).map(|pair| (pair[0].0, pair[1].0));
        pairs
            .map(|(open, close)| {
                let (info, text) = self.text[open + 3..close].split_once('\n').unwrap_or_default();
                let line = self.text[..open].lines().count() + 1;
                Block { line, info, text }
            })
            .collect()
    }

    fn begins_line(&self, at: usize) -> bool {
        at == 0 || self.text[..at].ends_with('\n')
    }

    /// Lines outside of fenced blocks, each with its number from 1.
    fn prose(&self) -> impl Iterator<Item = (usize, &str)> {
        let mut inside = false;
        let lines = self.text.lines().enumerate().map(|(n, line)| (n + 1, line));
        lines.filter(move |(_, line)| {
            let is_fence = line.starts_with("```");
            inside ^= is_fence;
            !inside && !is_fence
        })
    }

    fn place(&self, line: usize) -> String {
        format!("{}:{line}", self.path.display())
    }
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// The README and every page of the docs.
fn pages() -> Vec<Page> {
    let mut paths = vec![PathBuf::from("README.md")];
    for folder in FOLDERS {
        markdown(Path::new(folder), &mut paths);
    }
    paths.into_iter().map(Page::read).collect()
}

/// Adds every Markdown file of a folder, and of the folders in it, in alphabetical order.
fn markdown(folder: &Path, paths: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(root().join(folder)) else {
        return;
    };
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    for name in names {
        let path = folder.join(name);
        if root().join(&path).is_dir() {
            let is_written_here = path != Path::new("target") && !path.starts_with(".git");
            if is_written_here {
                markdown(&path, paths);
            }
        } else if path.extension().is_some_and(|ending| ending == "md") {
            paths.push(path);
        }
    }
}

// Commands.

/// Copies what the commands of a page may read.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy();
        let is_hidden = name.starts_with('.');
        if path.is_file() && !is_hidden {
            fs::copy(&path, to.join(&*name)).unwrap();
        } else if path.is_dir() && !is_hidden && !NOT_COPIED.iter().any(|folder| path.ends_with(folder)) {
            copy(&path, &to.join(&*name));
        }
    }
}

/// The script of a block, if it is to be run.
fn script(page: &Page, block: &Block<'_>) -> Option<String> {
    let warpwave = concat!("'", env!("CARGO_BIN_EXE_warpwave"), "' ");
    let lines = block.text.lines();
    let lines = lines.filter(|line| !page.is_readme() || line.starts_with(RUN));
    let script: String = lines.map(|line| line.replace(RUN, warpwave) + "\n").collect();
    (block.info == "sh" && !script.is_empty()).then_some(script)
}

/// Runs a script in a folder.
fn run(script: &str, folder: &Path) -> Output {
    let mut shell = Command::new("sh");
    let shell = shell.args(["-e", "-c", script]).current_dir(folder);
    shell.output().expect("sh runs scripts")
}

/// Runs every script of a page. Returns the findings.
fn try_page(page: &Page) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    copy(root(), folder.path());
    let blocks = page.blocks();
    for block in &blocks {
        if let Some((_, name)) = block.info.split_once(' ').filter(|(language, _)| *language != "sh") {
            fs::write(folder.path().join(name), block.text).unwrap();
        }
    }
    let mut findings = Vec::new();
    let mut printed = String::new();
    for block in &blocks {
        let place = page.place(block.line);
        if block.info == "output" {
            findings
                .extend(missing(block.text, &printed).map(|line| format!("{place}: not printed: {line}\n{printed}")));
        }
        let Some(script) = script(page, block) else {
            continue;
        };
        let output = run(&script, folder.path());
        printed = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        if !output.status.success() {
            findings.push(format!("{place}: ended with {}\n{script}{printed}", output.status));
        }
    }
    findings
}

/// The first line of `wanted` that does not follow the ones before it in `printed`; spaces do not count.
fn missing<'a>(wanted: &'a str, printed: &str) -> Option<&'a str> {
    let plain = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut printed = printed.lines().map(plain);
    let mut wanted = wanted.lines().filter(|line| line.trim() != "...");
    wanted.find(|wanted| !printed.any(|line| line == plain(wanted)))
}

#[test]
fn commands_run_as_written() {
    let pages = pages();
    let n_scripts = |page: &Page| page.blocks().iter().filter_map(|block| script(page, block)).count();
    assert!(
        pages.iter().map(n_scripts).sum::<usize>() > 10,
        "the scripts of the pages were not found"
    );
    let findings: Vec<_> = thread::scope(|scope| {
        let tried: Vec<_> = pages.iter().map(|page| scope.spawn(|| try_page(page))).collect();
        tried.into_iter().flat_map(|page| page.join().unwrap()).collect()
    });
    assert!(findings.is_empty(), "{}", findings.join("\n"));
}

#[test]
fn command_that_fails_and_output_that_differs_are_found() {
    let page = Page {
        path: "a.md".into(),
        text: "```sh\ncargo run --release -- explain none\n```\n```sh\necho a\n```\n```output\nb\n```\n```sh gui\nfalse\n```\n".into(),
    };
    let findings = try_page(&page);
    let places = findings.iter().map(|finding| finding.split(": ").next().unwrap());
    assert_eq!(places.collect::<Vec<_>>(), ["a.md:1", "a.md:7"]);
    assert!(findings[0].contains("ended with exit status: 2") && findings[1].contains("not printed: b"));
}

#[test]
fn every_shell_block_runs_or_says_why_not() {
    let mut findings = Vec::new();
    for page in pages() {
        for block in page.blocks() {
            let mut words = block.info.split(' ');
            let is_shell = matches!(words.next(), Some("sh" | "bash" | "shell" | "console"));
            if is_shell && !["sh", "sh gui", "sh slow", "sh gpu"].contains(&block.info) {
                findings.push(format!("{}: ```{}", page.place(block.line), block.info));
            }
        }
    }
    assert!(
        findings.is_empty(),
        "write ```sh, ```sh gui, ```sh slow or ```sh gpu:\n{}",
        findings.join("\n")
    );
}

#[test]
fn page_of_metrics_matches_the_command() {
    let page = Page::read("testbench/docs/metrics.md").text;
    let output = Command::new(env!("CARGO_BIN_EXE_warpwave"))
        .args(["explain", "--all"])
        .output();
    let output = output.unwrap();
    assert!(
        page == String::from_utf8_lossy(&output.stdout),
        "run: cargo run --release -- explain --all > testbench/docs/metrics.md"
    );
}

// Links and paths.

/// The targets of links and pictures in a line. Code spans have no links.
fn links(line: &str) -> Vec<&str> {
    let outside = line.split('`').step_by(2);
    let targets = outside.flat_map(|text| text.split("](").skip(1));
    targets
        .filter_map(|rest| rest.split_once(')').map(|(target, _)| target))
        .collect()
}

/// The anchor of a heading, as GitHub makes it.
fn anchor(heading: &str) -> String {
    let kept = heading
        .chars()
        .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.flat_map(char::to_lowercase)
        .map(|c| if c == ' ' { '-' } else { c })
        .collect()
}

fn anchors(page: &Page) -> BTreeSet<String> {
    let headings = page.prose().filter(|(_, line)| line.starts_with('#'));
    headings
        .map(|(_, line)| anchor(line.trim_start_matches('#').trim()))
        .collect()
}

/// Links that lead nowhere, as `page:line: target`.
fn dead_links(page: &Page) -> Vec<String> {
    let folder = page.path.parent().unwrap();
    let leads = |target: &str| {
        let (path, wanted) = target.split_once('#').unwrap_or((target, ""));
        if path.is_empty() {
            return anchors(page).contains(wanted);
        }
        let path = folder.join(path);
        let exists = root().join(&path).exists();
        exists && (wanted.is_empty() || anchors(&Page::read(path)).contains(wanted))
    };
    let all = page
        .prose()
        .flat_map(|(n, line)| links(line).into_iter().map(move |link| (n, link)));
    let relative = all.filter(|(_, link)| !link.contains("://"));
    relative
        .filter(|(_, link)| !leads(link))
        .map(|(n, link)| format!("{}: {link}", page.place(n)))
        .collect()
}

#[test]
fn links_lead_to_files_and_headings() {
    let mut paths = Vec::new();
    markdown(Path::new(""), &mut paths);
    let findings: Vec<_> = paths
        .into_iter()
        .map(Page::read)
        .flat_map(|page| dead_links(&page))
        .collect();
    assert!(findings.is_empty(), "dead links:\n{}", findings.join("\n"));
}

#[test]
fn dead_link_and_missing_heading_are_found() {
    let page = Page {
        path: "testbench/docs/a.md".into(),
        text: "# A b, `c`\n[x](tutorial.md) [y](#a-b-c) [z](#d) `[q](e)` ![p](../Cargo.toml) [w](https://a.b/c)\n\
               ```sh\n[v](f)\n```\n[u](g.md) [t](tutorial.md#h)\n"
            .into(),
    };
    let dead = ["2: #d", "6: g.md", "6: tutorial.md#h"].map(|link| format!("testbench/docs/a.md:{link}"));
    assert_eq!(dead_links(&page), dead);
}

#[test]
fn line_that_is_not_printed_is_found() {
    let printed = "a  1\nb 2\nc 3\n";
    assert_eq!(missing("a 1\n...\nc   3\n", printed), None);
    assert_eq!(missing("c 3\na 1\n", printed), Some("a 1"));
}

/// Paths of source files and folders that a page quotes.
fn quoted_paths(page: &Page) -> Vec<(usize, String)> {
    let is_path = |word: &&str| word.contains('/') && !word.contains([' ', '*', '<']);
    let is_kept = |word: &&str| word.ends_with(".rs") || word.ends_with('/');
    let quoted = page
        .prose()
        .flat_map(|(n, line)| line.split('`').skip(1).step_by(2).map(move |word| (n, word)));
    quoted
        .filter(|(_, word)| is_path(word) && is_kept(word))
        .map(|(n, word)| (n, word.to_owned()))
        .collect()
}

/// Pages name files from the root of the repository, or from the sources of their own crate.
fn exists(page: &Page, path: &str) -> bool {
    let own = page.path.components().next().map(|part| root().join(part).join("src"));
    root().join(path).exists() || own.is_some_and(|own| own.join(path).exists())
}

#[test]
fn files_and_folders_that_pages_name_exist() {
    let mut findings = Vec::new();
    for page in pages() {
        let missing = quoted_paths(&page).into_iter().filter(|(_, path)| !exists(&page, path));
        findings.extend(missing.map(|(n, path)| format!("{}: {path}", page.place(n))));
    }
    assert!(findings.is_empty(), "no such file:\n{}", findings.join("\n"));
}

#[test]
fn files_and_folders_of_the_map_exist() {
    let readme = Page::read("README.md");
    let blocks = readme.blocks();
    let map = blocks.iter().find(|block| block.text.starts_with("hw/")).unwrap();
    let mut parent = "";
    for line in map.text.lines() {
        let name = line.split_whitespace().next().unwrap();
        let path = match line.starts_with(' ') {
            true => root().join(parent).join(name),
            false => root().join(name),
        };
        assert!(path.exists(), "the map shows {}", path.display());
        parent = if line.starts_with(' ') { parent } else { name };
    }
}
