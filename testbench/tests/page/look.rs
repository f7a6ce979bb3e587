//! The page in a headless browser (Debian's `chromium`, skipped without it): tests pixels of a screenshot.

use std::collections::HashMap;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::process::{Command, Stdio};

use super::page;
use warpwave::report::stalls;

/// A screenshot: width, and red, green and blue of each pixel.
struct Picture {
    width: usize,
    pixels: Vec<[u8; 3]>,
}

impl Picture {
    fn read(file: &Path) -> Picture {
        let mut decoder = png::Decoder::new(BufReader::new(File::open(file).unwrap()));
        decoder.set_transformations(png::Transformations::normalize_to_color8());
        let mut reader = decoder.read_info().unwrap();
        let mut bytes = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut bytes).unwrap();
        let samples = info.color_type.samples();
        assert!(samples >= 3, "a picture in colours");
        Picture {
            width: info.width as usize,
            pixels: bytes[..info.buffer_size()]
                .chunks_exact(samples)
                .map(|pixel| [pixel[0], pixel[1], pixel[2]])
                .collect(),
        }
    }

    fn height(&self) -> usize {
        self.pixels.len() / self.width
    }

    /// The longest run of one colour in a row of pixels.
    fn longest(&self, colour: [u8; 3]) -> usize {
        let rows = self.pixels.chunks_exact(self.width);
        let runs = rows.flat_map(|row| row.chunk_by(|a, b| a == b));
        let of_colour = runs.filter(|run| run[0] == colour);
        of_colour.map(<[_]>::len).max().unwrap_or(0)
    }
}

/// Takes a screenshot of a page. `None` without a browser.
fn shoot(folder: &Path, text: &str, (width, height): (u32, u32)) -> Option<Picture> {
    let (file, shot) = (folder.join("page.html"), folder.join("page.png"));
    std::fs::write(&file, text).unwrap();
    let version = Command::new("chromium").arg("--version").stdout(Stdio::null()).status();
    if version.is_err() {
        eprintln!("skipped: `chromium` is not installed (Debian package chromium)");
        return None;
    }
    let status = Command::new("chromium")
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            "--force-device-scale-factor=1",
        ])
        .arg(format!("--user-data-dir={}", folder.join("profile").display()))
        .arg(format!("--screenshot={}", shot.display()))
        .arg(format!("--window-size={width},{height}"))
        .arg(format!("file://{}", file.display()))
        .stderr(Stdio::null())
        .status();
    assert!(status.unwrap().success(), "the browser failed");
    Some(Picture::read(&shot))
}

/// The colour of a state's bar in the markup.
fn colour(text: &str, state: &str) -> [u8; 3] {
    let (_, bar) = text.split_once(&format!("<div class=\"name\">{state}</div>")).unwrap();
    let (_, colour) = bar.split_once("background:#").unwrap();
    let byte = |n: usize| u8::from_str_radix(&colour[2 * n..2 * n + 2], 16).unwrap();
    [byte(0), byte(1), byte(2)]
}

#[test]
fn length_of_bars_on_the_screen_matches_their_shares() {
    let folder = tempfile::tempdir().unwrap();
    let (run, _, text) = page("transpose_tiled");
    // Only the part with the bars of all launches: the tabs before and the charts below use the same colours.
    let (top, rest) = text.split_once("<h2>Each launch</h2>").unwrap();
    let (_, rest) = rest.split_once("<h2>Where warps").unwrap();
    let (bars, _) = rest.split_once("<h2>Over time</h2>").unwrap();
    let top = format!("{top}<h2>Where warps{bars}");
    let Some(picture) = shoot(folder.path(), &format!("{top}</main></body></html>"), (1200, 1400)) else {
        return;
    };
    assert_eq!((picture.width, picture.height()), (1200, 1400));
    let mut table = stalls::table(&run.totals);
    table.sort_by_key(|stall| std::cmp::Reverse(stall.warp_cycles));
    let bar = |n: usize| picture.longest(colour(&text, table[n].state)) as f64;
    assert!(bar(0) > 300.0, "the first bar has {} pixels", bar(0));
    for n in 1..4 {
        let (found, wanted) = (bar(n) / bar(0), table[n].percent / table[0].percent);
        assert!(
            (found - wanted).abs() < 0.02,
            "{}: {found:.3} of the first, not {wanted:.3}",
            table[n].state
        );
    }
}

#[test]
fn whole_page_on_screen_and_phone_is_filled_to_its_end_and_fits_the_width() {
    let (_, _, text) = page("transpose_tiled");
    for (width, height) in [(1200, 3000), (500, 3000)] {
        let folder = tempfile::tempdir().unwrap();
        let Some(picture) = shoot(folder.path(), &text, (width, height)) else {
            return;
        };
        assert_eq!((picture.width, picture.height()), (width as usize, height as usize));
        let mut colours = HashMap::<[u8; 3], usize>::new();
        picture
            .pixels
            .iter()
            .for_each(|pixel| *colours.entry(*pixel).or_default() += 1);
        let white = colours[&[255; 3]] as f64 / picture.pixels.len() as f64;
        assert!(
            (0.3..0.95).contains(&white),
            "{width} pixels wide: {white:.2} of the page is white"
        );
        let common = colours.values().filter(|count| **count > 200).count();
        assert!(common >= 12, "{width} pixels wide: {common} colours");
        // No part of a screen's height is empty, but the right margin is.
        let rows: Vec<_> = picture.pixels.chunks_exact(picture.width).collect();
        assert!(
            rows.chunks(800)
                .all(|screen| screen.iter().any(|row| row.iter().any(|pixel| *pixel != [255; 3])))
        );
        assert!(
            rows.iter()
                .all(|row| row[picture.width - 4..].iter().all(|pixel| *pixel == [255; 3]))
        );
    }
}
