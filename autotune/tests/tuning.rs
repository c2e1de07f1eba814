//! Tuning a small model on the emulator, end to end. Installs NVRTC where there is none.

#![allow(clippy::unwrap_used, reason = "a test stops where its setting fails")]

mod common;

use common::{Autotune, SMALL_MODEL, files};
use serde_json::Value;
use std::process::Stdio;
use std::sync::OnceLock;
use std::time::Instant;

/// A copy of a tuned cache of the small model's bf16 kernel, and the answer of the run that filled it.
///
/// Tuned once for all tests: a cache that is copied works like the original.
fn tuned() -> (Autotune, Value) {
    static TUNED: OnceLock<(Autotune, Value)> = OnceLock::new();
    let (original, run) = TUNED.get_or_init(|| {
        let autotune = Autotune::new();
        let config = autotune.file("config.json", SMALL_MODEL);
        let run = autotune.json(
            &["run", "--model", &config, "--kv-dtype", "bf16", "--json"],
            0,
        );
        (autotune, run)
    });
    let copy = Autotune::new();
    for (from, _) in files(original.folder.path()) {
        let inside = from.strip_prefix(original.folder.path()).unwrap();
        let to = copy.folder.path().join(inside);
        std::fs::create_dir_all(to.parent().unwrap()).unwrap();
        std::fs::copy(from, to).unwrap();
    }
    (copy, run.clone())
}

fn again(autotune: &Autotune) -> Value {
    let config = autotune.folder.path().join("config.json");
    let config = config.to_str().unwrap();
    autotune.json(
        &["run", "--model", config, "--kv-dtype", "bf16", "--json"],
        0,
    )
}

fn len(value: &Value) -> usize {
    value.as_array().expect("an array").len()
}

#[test]
fn a_run_gives_a_proved_ranked_kernel_with_everything_that_is_documented() {
    let (_, run) = tuned();
    assert_eq!(run["gpu"], "a100-sxm4-80gb");
    assert_eq!(run["device"], "emulated");
    assert!(
        run["cache"]
            .as_str()
            .unwrap()
            .ends_with("cache/a100-sxm4-80gb")
    );
    assert!(run["compiled"].as_u64().unwrap() >= 4);
    assert_eq!(run["reused"], 0);
    assert!(run["elapsed_s"].as_f64().unwrap() > 0.0);
    assert_eq!(len(&run["kernels"]), 1);
    assert_eq!(len(&run["failed"]), 0, "{run:#}");

    let kernel = &run["kernels"][0];
    let id = kernel["id"].as_str().unwrap();
    assert!(
        id.starts_with("decode-d64-g3-b16-bf16-bf16-nhd-dense-"),
        "{id}"
    );
    assert_eq!(kernel["spec"]["head_dim"], 64);
    assert!(kernel["tuning"]["warps"].as_u64().unwrap() >= 2);
    assert_eq!(kernel["shape"]["batch"], 4);
    assert_eq!(kernel["shape"]["tokens"], 4096);
    assert_eq!(kernel["provenance"]["kind"], "modelled");
    assert_eq!(kernel["provenance"]["gpu"], "a100-sxm4-80gb");
    assert!(kernel["provenance"]["model_version"].is_string());
    assert!(kernel["time_us"].as_f64().unwrap() > 1.0);
    let fraction = kernel["roofline_fraction"].as_f64().unwrap();
    assert!(fraction > 0.0 && fraction <= 1.0, "{fraction}");
    for candidate in run["candidates"].as_array().unwrap() {
        assert_eq!(candidate["spill_bytes"], 0);
        assert_eq!(candidate["proof"]["findings"], 0);
        assert!(candidate["registers"].as_u64().unwrap() > 0);
        let error = candidate["max_relative_l2"].as_f64().unwrap();
        assert!(error > 0.0 && error <= 3e-3, "{error}");
    }
    let times: Vec<f64> = run["candidates"]
        .as_array()
        .unwrap()
        .iter()
        .map(|candidate| candidate["time_us"].as_f64().unwrap())
        .collect();
    // Best first, up to the 2 % within which a fixed order decides.
    assert!(
        times.iter().all(|&time| times[0] <= time * 1.02),
        "{times:?}"
    );
}

#[test]
fn a_second_run_reuses_everything_and_needs_no_compiler() {
    let (autotune, first) = tuned();
    let before = files(&autotune.cache());
    let begin = Instant::now();
    let config = autotune.folder.path().join("config.json");
    let answer = autotune
        .command(&[
            "run",
            "--model",
            config.to_str().unwrap(),
            "--kv-dtype",
            "bf16",
        ])
        .args(["--offline", "--json"])
        .output()
        .unwrap();
    let elapsed = begin.elapsed();
    let answer = common::Answer::of(answer);
    assert_eq!(answer.code, 0, "{answer:?}");
    let second: Value = serde_json::from_str(&answer.stdout).unwrap();
    assert_eq!(second["compiled"], 0);
    assert_eq!(second["reused"], first["compiled"]);
    assert_eq!(second["kernels"], first["kernels"]);
    assert_eq!(second["candidates"], first["candidates"]);
    assert_eq!(files(&autotune.cache()), before);
    // Unoptimised and beside other tests; the release build takes a tenth of a second.
    assert!(elapsed.as_secs() < 10, "{elapsed:?}");
}

#[test]
fn an_interrupted_run_goes_on_where_it_was() {
    let (autotune, first) = tuned();
    let compiled = first["compiled"].as_u64().unwrap();
    // As if the last of its variants had not been reached.
    let lost = first["candidates"][1]["id"].as_str().unwrap();
    let record = files(&autotune.cache())
        .into_iter()
        .map(|(path, _)| path)
        .find(|path| {
            path.components().any(|part| part.as_os_str() == "records")
                && std::fs::read_to_string(path).unwrap().contains(lost)
        })
        .expect("the record of a kept variant");
    std::fs::remove_file(record).unwrap();
    let second = again(&autotune);
    assert_eq!(second["compiled"], 1);
    assert_eq!(second["reused"].as_u64().unwrap(), compiled - 1);
    assert_eq!(second["kernels"], first["kernels"]);
}

#[test]
fn a_damaged_image_is_named_and_the_next_run_heals_it() {
    let (autotune, first) = tuned();
    assert_eq!(autotune.run(&["cache", "verify"]).code, 0);
    let (image, _) = files(&autotune.cache())
        .into_iter()
        .find(|(path, _)| path.extension().is_some_and(|end| end == "image"))
        .expect("an image");
    let mut bytes = std::fs::read(&image).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&image, bytes).unwrap();

    let verified = autotune.run(&["cache", "verify"]);
    assert_eq!(verified.code, 1, "{verified:?}");
    assert!(
        verified.stdout.contains(image.to_str().unwrap()),
        "{verified:?}"
    );
    let proved = autotune.json(&["verify", "--json"], 1);
    assert_eq!(proved["failed"], 1, "{proved:#}");

    let second = again(&autotune);
    assert_eq!(second["compiled"], 1, "{second:#}");
    assert_eq!(second["kernels"][0]["id"], first["kernels"][0]["id"]);
    assert_eq!(autotune.run(&["cache", "verify"]).code, 0);
}

#[test]
fn a_cache_is_listed_shown_and_proved_again_without_being_written() {
    let (autotune, run) = tuned();
    let before = files(&autotune.cache());
    let listing = autotune.json(&["cache", "ls", "--json"], 0);
    assert_eq!(len(&listing["kernels"]), len(&run["candidates"]));
    assert_eq!(listing["kernels"][0]["id"], run["kernels"][0]["id"]);

    let id = run["kernels"][0]["id"].as_str().unwrap();
    let shown = autotune.json(&["show", id, "--json"], 0);
    assert_eq!(shown["id"], id);
    assert!(
        shown["source"]
            .as_str()
            .unwrap()
            .contains("pagesmith_decode")
    );
    assert!(
        shown["ptx"]
            .as_str()
            .unwrap()
            .contains(".entry pagesmith_decode")
    );
    assert_eq!(shown["record"]["id"], id);
    assert!(shown["resources"].as_array().unwrap().len() >= 2);
    assert_eq!(shown["source_is_current"], true);
    assert_eq!(shown["work"]["bank_conflicts"], 0);

    let ptx = autotune.run(&["show", id, "--ptx"]);
    assert_eq!(ptx.stdout, shown["ptx"].as_str().unwrap());
    let source = autotune.run(&["show", id, "--source"]);
    assert_eq!(source.stdout, shown["source"].as_str().unwrap());

    let ambiguous = autotune.run(&["show", "decode-d64-g3"]);
    assert_eq!(ambiguous.code, 2);
    assert!(
        ambiguous.stderr.contains("use more of one"),
        "{ambiguous:?}"
    );

    let proved = autotune.json(&["verify", "--json"], 0);
    assert_eq!(
        proved["variants"].as_u64().unwrap() as usize,
        len(&run["candidates"])
    );
    assert_eq!(proved["passed"], proved["variants"]);
    assert_eq!(proved["failed"], 0);
    assert_eq!(len(&proved["findings"]), 0);
    assert!(proved["max_relative_l2"].as_f64().unwrap() <= 3e-3);
    assert_eq!(files(&autotune.cache()), before);
}

#[test]
fn a_closed_pipe_is_quiet() {
    let (autotune, run) = tuned();
    let id = run["kernels"][0]["id"].as_str().unwrap();
    // More than a pipe holds, so that the write meets the closed end.
    let mut child = autotune
        .command(&["show", id, "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn compiling_keeps_candidates_for_a_gpu_that_is_elsewhere() {
    let autotune = Autotune::new();
    let config = autotune.file("config.json", SMALL_MODEL);
    let compiled = autotune.json(
        &[
            "compile",
            "--model",
            &config,
            "--gpu",
            "h200",
            "--kv-dtype",
            "fp8_e4m3",
            "--json",
        ],
        0,
    );
    assert_eq!(compiled["gpu"], "h200");
    assert_eq!(compiled["kernels"][0]["provenance"]["kind"], "modelled");
    assert_eq!(compiled["kernels"][0]["provenance"]["gpu"], "h200");
    let listing = autotune.json(&["cache", "ls", "--gpu", "h200", "--json"], 0);
    assert_eq!(len(&listing["kernels"]), len(&compiled["candidates"]));
    assert!(len(&listing["kernels"]) >= 4);
}

#[test]
fn doctor_says_that_this_machine_is_ready_and_what_was_searched() {
    let autotune = Autotune::new();
    let report = autotune.json(&["doctor", "--json"], 0);
    assert_eq!(report["ready"], true);
    assert!(len(&report["searched"]) >= 6, "{report:#}");
    let text = autotune.run(&["doctor"]);
    assert!(text.stdout.contains("ready:"), "{text:?}");
}

#[test]
fn doctor_fails_where_nothing_can_compile_and_says_what_to_do() {
    let autotune = Autotune::new();
    let empty = autotune.folder.path().join("empty");
    std::fs::create_dir(&empty).unwrap();
    let output = autotune
        .command(&["doctor"])
        .env("PAGESMITH_NVRTC", &empty)
        .output()
        .unwrap();
    let answer = common::Answer::of(output);
    assert_eq!(answer.code, 1, "{answer:?}");
    assert!(answer.stdout.contains("not ready:"), "{answer:?}");
    assert!(
        answer.stdout.contains("correct PAGESMITH_NVRTC"),
        "{answer:?}"
    );
}

#[test]
fn without_a_compiler_a_run_fails_and_says_how_to_get_one() {
    let autotune = Autotune::new();
    let config = autotune.file("config.json", SMALL_MODEL);
    let empty = autotune.folder.path().join("empty");
    std::fs::create_dir(&empty).unwrap();
    let output = autotune
        .command(&["run", "--offline", "--model", &config])
        .env("PAGESMITH_NVRTC", &empty)
        .output()
        .unwrap();
    let answer = common::Answer::of(output);
    assert_eq!(answer.code, 1, "{answer:?}");
    assert!(answer.stderr.contains("PAGESMITH_NVRTC"), "{answer:?}");
    let records = files(&autotune.cache());
    assert!(
        records
            .iter()
            .all(|(path, _)| path.ends_with("CACHEDIR.TAG")),
        "{records:?}"
    );
}
