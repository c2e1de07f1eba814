//! Bad input: exit code 2, a message that names field, value and fix, and nothing written.

#![allow(clippy::unwrap_used, reason = "a test stops where its setting fails")]

mod common;

use common::{Autotune, SMALL_MODEL};

/// Runs, and asserts the refusal: every text of `expected` is in the message.
fn refused(autotune: &Autotune, arguments: &[&str], expected: &[&str]) {
    let answer = autotune.run(arguments);
    assert_eq!(answer.code, 2, "{arguments:?}: {answer:?}");
    assert_eq!(answer.stdout, "", "{arguments:?}");
    assert!(!answer.stderr.contains("panicked"), "{}", answer.stderr);
    for text in expected {
        assert!(
            answer.stderr.contains(text),
            "{arguments:?}: `{text}` is missing in: {}",
            answer.stderr
        );
    }
    assert!(!autotune.cache().exists(), "{arguments:?} wrote a cache");
}

#[test]
fn an_unknown_model_is_refused_with_the_one_that_was_meant_and_those_there_are() {
    refused(
        &Autotune::new(),
        &["run", "--model", "llama-3-9b"],
        &[
            "error: model:",
            "llama-3-9b",
            "llama-3-8b",
            "smollm2-135m",
            "config.json",
        ],
    );
}

#[test]
fn an_unsupported_block_size_is_refused_with_the_nearest() {
    refused(
        &Autotune::new(),
        &["run", "--model", "llama-3-8b", "--block-size", "12"],
        &["block_size: 12", "8 and 16"],
    );
}

#[test]
fn a_model_with_windows_and_softcap_is_refused_by_the_name_of_the_feature() {
    let autotune = Autotune::new();
    let answer = autotune.run(&["run", "--model", "gemma-2-9b"]);
    assert_eq!(answer.code, 2, "{answer:?}");
    let named = ["window", "softcap"]
        .iter()
        .any(|name| answer.stderr.contains(name));
    assert!(named, "{}", answer.stderr);
}

#[test]
fn an_unknown_gpu_is_refused_with_those_there_are() {
    refused(
        &Autotune::new(),
        &["run", "--model", "llama-3-8b", "--gpu", "b300"],
        &["gpu: `b300`", "a100-sxm4-80gb", "h200"],
    );
}

#[test]
fn an_unknown_or_mismatched_dtype_is_refused() {
    let autotune = Autotune::new();
    refused(
        &autotune,
        &["run", "--model", "llama-3-8b", "--kv-dtype", "int3"],
        &["int3", "fp8_e4m3"],
    );
    refused(
        &autotune,
        &["run", "--model", "llama-3-8b", "--kv-dtype", "f16"],
        &["kv_dtype: f16", "bf16"],
    );
}

#[test]
fn a_config_without_a_field_is_refused_by_the_name_of_the_field() {
    let autotune = Autotune::new();
    let config = SMALL_MODEL.replace("\"num_attention_heads\": 9,", "");
    let path = autotune.file("config.json", config);
    refused(
        &autotune,
        &["run", "--model", &path],
        &["config.json", "`num_attention_heads` is missing"],
    );
}

#[test]
fn heads_that_do_not_divide_are_refused_with_those_that_do() {
    let autotune = Autotune::new();
    let config = SMALL_MODEL.replace("\"num_key_value_heads\": 3", "\"num_key_value_heads\": 4");
    let path = autotune.file("config.json", config);
    refused(
        &autotune,
        &["run", "--model", &path],
        &["kv_heads = 4", "use one of 1, 3, 9"],
    );
}

#[test]
fn an_unsupported_head_dim_is_refused_with_the_nearest() {
    let autotune = Autotune::new();
    let config = SMALL_MODEL.replace("576", "648");
    let path = autotune.file("config.json", config);
    refused(
        &autotune,
        &["run", "--model", &path],
        &["head_dim: 72", "64 and 80"],
    );
}

#[test]
fn a_truncated_or_hostile_gguf_is_refused_without_a_panic() {
    let autotune = Autotune::new();
    // Magic, version 3, no tensors, and 2^63 entries that are not there.
    let mut hostile = b"GGUF\x03\0\0\0\0\0\0\0\0\0\0\0".to_vec();
    hostile.extend_from_slice(&(1u64 << 63).to_le_bytes());
    for (name, contents) in [
        ("empty.gguf", &b""[..]),
        ("short.gguf", b"GGUF\x03\0"),
        (
            "other.gguf",
            b"not a model at all, but long enough for a header",
        ),
        ("hostile.gguf", &hostile),
    ] {
        let path = autotune.file(name, contents);
        refused(&autotune, &["run", "--model", &path], &["error:"]);
    }
}

#[test]
fn a_missing_model_file_is_named() {
    refused(
        &Autotune::new(),
        &["run", "--model", "/nowhere/config.json"],
        &["model: cannot read /nowhere/config.json"],
    );
}

#[test]
fn a_cache_that_cannot_be_made_is_refused_before_anything_is_compiled() {
    let autotune = Autotune::new();
    let file = autotune.file("file", "");
    let inside = format!("{file}/cache");
    refused(
        &autotune,
        &["run", "--model", "llama-3-8b", "--cache", &inside],
        &["cache: cannot create", &inside, "--cache"],
    );
}

#[test]
fn without_a_home_the_variables_are_named() {
    let autotune = Autotune::new();
    let output = autotune
        .command(&["cache", "ls"])
        .env_remove("PAGESMITH_CACHE")
        .env_remove("XDG_CACHE_HOME")
        .env_remove("HOME")
        .output()
        .unwrap();
    let answer = common::Answer::of(output);
    assert_eq!(answer.code, 2, "{answer:?}");
    assert!(answer.stderr.contains("PAGESMITH_CACHE"), "{answer:?}");
}

#[test]
fn the_emulator_is_never_measured() {
    refused(
        &Autotune::new(),
        &["measure", "--device", "emulated"],
        &["device: emulated cannot be measured"],
    );
}

#[test]
fn a_device_that_is_not_there_is_refused_by_name() {
    let autotune = Autotune::new();
    for arguments in [
        &["measure", "--device", "cuda:4096"][..],
        &["run", "--model", "llama-3-8b", "--device", "cuda:4096"],
    ] {
        refused(&autotune, arguments, &["cuda"]);
    }
}

#[test]
fn a_kernel_that_no_cache_has_is_refused() {
    refused(
        &Autotune::new(),
        &["show", "decode-nothing"],
        &["kernel: `decode-nothing`", "autotune cache ls"],
    );
}

#[test]
fn verifying_an_empty_cache_says_how_to_fill_it() {
    refused(&Autotune::new(), &["verify"], &["cache:", "autotune run"]);
    refused(
        &Autotune::new(),
        &["cache", "verify"],
        &["cache:", "autotune run"],
    );
}

#[test]
fn usage_errors_exit_with_2_and_name_the_argument() {
    let autotune = Autotune::new();
    for (arguments, expected) in [
        (&["run"][..], "--model"),
        (&["compile"], "--model"),
        (&["run", "--model", "llama-3-8b", "--jobs", "0"], "--jobs"),
        (
            &["run", "--model", "llama-3-8b", "--device", "gpu"],
            "cuda:0",
        ),
        (
            &["compile", "--model", "llama-3-8b", "--matrix", "pairwise"],
            "--matrix",
        ),
        (&["frobnicate"], "frobnicate"),
    ] {
        refused(&autotune, arguments, &[expected]);
    }
}

#[test]
fn json_reports_a_failure_as_an_object_on_stdout_and_in_words_on_stderr() {
    let autotune = Autotune::new();
    let failure = autotune.json(&["run", "--model", "nothing", "--json"], 2);
    assert_eq!(failure["error"]["exit_code"], 2);
    let message = failure["error"]["message"].as_str().unwrap();
    assert!(message.contains("`nothing`"), "{message}");
}

#[test]
fn a_dry_run_says_what_would_be_tried_and_why_the_rest_is_not_and_writes_nothing() {
    let autotune = Autotune::new();
    let answer = autotune.run(&["run", "--model", "llama-3-8b", "--dry-run"]);
    assert_eq!(answer.code, 0, "{answer:?}");
    for text in [
        "decode-d128-g4-b16-bf16-bf16-nhd-dense",
        "decode-d128-g4-b16-bf16-e4m3-nhd-dense",
        "simt",
        "bytes of shared memory a CTA exceed",
        "wastes rows on a group of 4",
    ] {
        assert!(answer.stdout.contains(text), "{text}: {}", answer.stdout);
    }
    let plan = autotune.json(&["run", "--model", "llama-3-8b", "--dry-run", "--json"], 0);
    for spec in plan["specs"].as_array().unwrap() {
        let excluded = spec["excluded"].as_array().unwrap();
        assert!(excluded.len() > 100);
        assert!(
            excluded
                .iter()
                .all(|excluded| !excluded["reason"].as_str().unwrap().is_empty())
        );
        let chosen = spec["chosen"].as_array().unwrap();
        assert!((8..=13).contains(&chosen.len()), "{}", chosen.len());
    }
    assert!(!autotune.cache().exists());
}

#[test]
fn completions_come_from_the_one_definition_of_the_command_line() {
    let autotune = Autotune::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let answer = autotune.run(&["completions", shell]);
        assert_eq!(answer.code, 0, "{answer:?}");
        assert!(answer.stdout.contains("kv-dtype"), "{shell}");
    }
}
