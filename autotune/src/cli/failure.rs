//! What went wrong, and which exit code says so.

use pagesmith_autotune::TuneError;
use serde_json::json;
use std::fmt;
use std::process::ExitCode;

/// Why a verb stopped.
#[derive(Debug)]
pub(crate) enum Failure {
    /// What was asked for cannot be: exit code 2.
    Input(String),
    /// Something failed on the way: exit code 1.
    Failed(String),
}

impl Failure {
    /// Bad input that names its field, what it held, and the fix.
    pub(crate) fn input(text: impl fmt::Display) -> Self {
        Failure::Input(text.to_string())
    }

    pub(crate) fn failed(text: impl fmt::Display) -> Self {
        Failure::Failed(text.to_string())
    }

    /// The code the process ends with.
    pub(crate) fn code(&self) -> u8 {
        match self {
            Failure::Input(_) => 2,
            Failure::Failed(_) => 1,
        }
    }

    pub(crate) fn exit(&self) -> ExitCode {
        self.code().into()
    }

    /// The object that `--json` prints in place of an answer.
    pub(crate) fn json(&self) -> serde_json::Value {
        json!({ "error": { "message": self.to_string(), "exit_code": self.code() } })
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Input(text) | Failure::Failed(text) => f.write_str(text),
        }
    }
}

impl From<TuneError> for Failure {
    fn from(error: TuneError) -> Self {
        if error.is_input() {
            Failure::input(error)
        } else {
            Failure::failed(error)
        }
    }
}
