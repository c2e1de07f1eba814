//! What the tests of the binary share.

#![allow(dead_code, reason = "each test binary uses a part")]
#![allow(clippy::unwrap_used, reason = "a test stops where its setting fails")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The `autotune` of this build with a cache of its own.
pub(crate) struct Autotune {
    pub(crate) folder: tempfile::TempDir,
}

impl Autotune {
    pub(crate) fn new() -> Self {
        Autotune {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    pub(crate) fn cache(&self) -> PathBuf {
        self.folder.path().join("cache")
    }

    /// A command with the cache set by its variable.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_autotune"));
        command
            .args(arguments)
            .env("PAGESMITH_CACHE", self.cache())
            .env_remove("RUST_BACKTRACE");
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Answer {
        Answer::of(self.command(arguments).output().unwrap())
    }

    /// Runs, and gives the JSON object of standard output; fails loudly when the exit code is another.
    pub(crate) fn json(&self, arguments: &[&str], code: i32) -> serde_json::Value {
        let answer = self.run(arguments);
        assert_eq!(answer.code, code, "{arguments:?}: {answer:?}");
        serde_json::from_str(&answer.stdout)
            .unwrap_or_else(|error| panic!("{arguments:?}: {error}: {answer:?}"))
    }

    /// A file in the test's folder.
    pub(crate) fn file(&self, name: &str, contents: impl AsRef<[u8]>) -> String {
        let path = self.folder.path().join(name);
        std::fs::write(&path, contents).unwrap();
        path.to_str().unwrap().to_owned()
    }
}

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Answer {
    pub(crate) fn of(output: Output) -> Self {
        Answer {
            code: output.status.code().expect("not killed by a signal"),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

/// Every file below a folder, with its length.
pub(crate) fn files(folder: &Path) -> Vec<(PathBuf, u64)> {
    let mut all = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                open.push(path);
            } else {
                all.push((path, entry.metadata().unwrap().len()));
            }
        }
    }
    all.sort();
    all
}

/// SmolLM2-135M's attention in a config.json: 9 query heads, 3 KV heads, head dim 64.
pub(crate) const SMALL_MODEL: &str = r#"{
    "model_type": "llama", "num_hidden_layers": 30, "num_attention_heads": 9,
    "num_key_value_heads": 3, "hidden_size": 576, "max_position_embeddings": 8192,
    "rope_theta": 100000
}"#;
