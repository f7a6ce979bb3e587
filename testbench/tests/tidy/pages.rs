//! Rules for the pages of the docs and their pictures.

use std::fs;
use std::path::Path;

use crate::{File, assert_none, files, root, rust};

/// Folders of pages, and of the pictures in them.
const DOCS: [&str; 4] = ["testbench/docs", "components/docs", "hw/docs", "waveforms/docs"];

/// A page must have fewer lines than this.
const TOO_MANY_PAGE_LINES: usize = 200;

/// Maximum number of bytes of a picture.
const MOST_PICTURE_BYTES: u64 = 150_000;

/// The start of a page's third line if a command prints it. Such a page may be longer.
const MADE_BY: &str = "This page is made by `";

#[test]
fn pages_are_not_too_long() {
    let in_docs = |file: &File| DOCS.iter().any(|folder| file.path.starts_with(folder)) && file.path.ends_with(".md");
    let findings = files()
        .iter()
        .filter(|file| in_docs(file))
        .filter_map(long_page)
        .collect();
    assert_none(findings, "split the page by topic, or let a command print it");
}

/// A page with too many lines, unless a command prints it.
fn long_page(file: &File) -> Option<String> {
    let lines = file.text.lines().count();
    let is_made = file.text.lines().nth(2).is_some_and(|line| line.starts_with(MADE_BY));
    let is_long = lines >= TOO_MANY_PAGE_LINES && !is_made;
    is_long.then(|| {
        format!(
            "{}: {lines} lines, fewer than {TOO_MANY_PAGE_LINES} are allowed",
            file.path
        )
    })
}

#[test]
fn pictures_are_small_and_shown() {
    let mut findings = Vec::new();
    for folder in DOCS {
        pictures(&root().join(folder), &mut findings);
    }
    assert_none(
        findings,
        "take fewer colours or a smaller part; delete what no page shows",
    );
}

/// Findings on the pictures of a folder, and of the folders in it.
fn pictures(folder: &Path, findings: &mut Vec<String>) {
    let shown: String = files()
        .into_iter()
        .filter(|file| file.path.ends_with(".md"))
        .map(|file| file.text)
        .collect();
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() {
            pictures(&path, findings);
        } else if name.ends_with(".png") {
            findings.extend(picture(&name, fs::metadata(&path).unwrap().len(), &shown));
        }
    }
}

/// The fault of a picture with this name and size, in pages with this text.
fn picture(name: &str, bytes: u64, pages: &str) -> Option<String> {
    let mut links = pages.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let is_shown = links.any(|link| link.ends_with(name));
    match (bytes, is_shown) {
        (_, false) => Some(format!("{name}: no page shows it")),
        (MOST_PICTURE_BYTES.., _) => Some(format!("{name}: {bytes} bytes, at most {MOST_PICTURE_BYTES}")),
        _ => None,
    }
}

#[test]
fn long_page_and_large_picture_are_found() {
    let page = |head: &str, lines| rust("testbench/docs/a.md", &(head.to_owned() + &"a\n".repeat(lines)));
    assert_eq!(long_page(&page("", 199)), None);
    assert!(long_page(&page("", 200)).is_some());
    assert_eq!(long_page(&page("# A\n\nThis page is made by `b`.\n", 300)), None);
    assert_eq!(picture("a.png", 1, "![text](b/a.png)"), None);
    assert_eq!(picture("a.png", 1, "a.png").as_deref(), Some("a.png: no page shows it"));
    assert!(picture("a.png", 150_001, "![text](a.png)").is_some());
}
