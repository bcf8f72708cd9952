//! Chromium without a window: what a page looks like.

use std::collections::HashMap;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{stderr, text, Place};

pub const DARK: &str = "--blink-settings=preferredColorScheme=0";

/// The browser that there is.
pub fn find() -> Option<&'static str> {
    let runs = |program: &str| Command::new(program).arg("--version").output().is_ok_and(|done| done.status.success());
    ["chromium", "chromium-browser"].into_iter().find(|name| runs(name))
}

/// With a profile of its own, and no wish to speak with anybody.
pub fn browse(place: &Place, browser: &str) -> Command {
    let profile = tempfile::tempdir_in(place.dir.path()).unwrap().keep();
    let mut command = Command::new("timeout");
    command.args(["120", browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]);
    command.args(["--disable-component-update", "--disable-sync", "--allow-file-access-from-files"]);
    command.arg(format!("--user-data-dir={}", text(&profile))).env_remove("LD_PRELOAD");
    command
}

pub fn screenshot(place: &Place, browser: &str, page: &Path, size: &str, settings: &[&str]) -> PathBuf {
    let image = place.path("page.png");
    let _ = std::fs::remove_file(&image);
    let mut command = browse(place, browser);
    command.args(settings).arg(format!("--window-size={size}")).arg(format!("--screenshot={}", text(&image)));
    let output = command.arg(format!("file://{}", text(page))).output().unwrap();
    assert!(image.is_file(), "{}", stderr(&output));
    image
}

pub fn colours_of(image: &Path) -> HashMap<[u8; 3], usize> {
    let mut reader = png::Decoder::new(BufReader::new(File::open(image).unwrap())).read_info().unwrap();
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut pixels).unwrap();
    let mut colours = HashMap::new();
    for pixel in pixels[..info.buffer_size()].chunks(info.color_type.samples()) {
        *colours.entry([pixel[0], pixel[1], pixel[2]]).or_insert(0) += 1;
    }
    colours
}
