//! What the other crates rely on in these texts.

use super::{HEADERS, TEMPLATES};
use std::collections::BTreeSet;
use std::path::Path;

fn includes(text: &str) -> impl Iterator<Item = &str> {
    text.lines()
        .filter_map(|line| line.strip_prefix("#include "))
        .map(|name| name.trim_matches('"'))
}

#[test]
fn every_text_names_itself_by_an_absolute_line_directive() {
    // Without it the working directory is baked into the image, and two builds of a variant differ.
    let of_header = HEADERS
        .iter()
        .map(|(name, text)| (name.replacen("pagesmith/", "/pagesmith/device/", 1), text));
    let of_template = TEMPLATES
        .iter()
        .map(|(name, text)| (format!("/pagesmith/templates/{name}"), text));
    for (path, text) in of_header.chain(of_template) {
        let first = text.lines().next().unwrap_or_default();
        assert_eq!(first, format!("#line 1 \"{path}\""));
    }
}

#[test]
fn every_file_on_disk_is_embedded() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let on_disk = |folder: &str| -> BTreeSet<String> {
        std::fs::read_dir(root.join(folder))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect()
    };
    let embedded = |texts: &[(&str, &str)]| -> BTreeSet<String> {
        texts
            .iter()
            .map(|(name, _)| name.trim_start_matches("pagesmith/").to_owned())
            .collect()
    };
    assert_eq!(embedded(HEADERS), on_disk("device"));
    assert_eq!(embedded(TEMPLATES), on_disk("templates"));
}

#[test]
fn includes_name_only_embedded_headers_and_the_generated_one() {
    let known: BTreeSet<&str> = HEADERS
        .iter()
        .map(|(name, _)| *name)
        .chain(["pagesmith/abi.cuh"])
        .collect();
    for (name, text) in HEADERS.iter().chain(TEMPLATES) {
        for include in includes(text) {
            // The one computed include: the engine's.
            let include = include.replace("@{ engine }@", "mma");
            assert!(known.contains(&*include), "{name} includes {include}");
        }
    }
}

#[test]
fn headers_hold_no_template_syntax_and_are_included_once() {
    for (name, text) in HEADERS {
        for delimiter in ["@{", "}@", "@[", "]@", "@#", "#@"] {
            assert!(!text.contains(delimiter), "{name} contains {delimiter}");
        }
        assert!(
            text.contains("\n#pragma once\n"),
            "{name} lacks #pragma once"
        );
    }
}

#[test]
fn no_double_literal_slips_into_device_code() {
    // A bare 0.125 is a double: 64 times slower, silently.
    for (name, text) in HEADERS.iter().chain(TEMPLATES) {
        for (number, line) in text.lines().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            // Assembly text has its own literals.
            if code.contains('"') {
                continue;
            }
            for word in code.split(|c: char| !(c.is_ascii_alphanumeric() || c == '.' || c == '_')) {
                let is_float = word.starts_with(|c: char| c.is_ascii_digit()) && word.contains('.');
                assert!(
                    !is_float || word.ends_with('f'),
                    "{name}:{}: {word}",
                    number + 1
                );
            }
        }
    }
}

#[test]
fn lines_fit_a_reader_s_screen() {
    for (name, text) in HEADERS.iter().chain(TEMPLATES) {
        for (number, line) in text.lines().enumerate() {
            assert!(
                line.len() <= 140,
                "{name}:{} has {} columns",
                number + 1,
                line.len()
            );
        }
    }
}
