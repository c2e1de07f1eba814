//! `autotune completions SHELL`.

use crate::cli::answer::Answer;
use crate::cli::args::Cli;
use crate::cli::page::Page;
use clap::CommandFactory;
use clap_complete::Shell;
use serde_json::{Value, json};
use std::io;

pub(crate) struct Completions {
    shell: Shell,
    script: String,
}

impl Completions {
    pub(crate) fn new(shell: Shell) -> Self {
        let mut script = Vec::new();
        clap_complete::generate(shell, &mut Cli::command(), "autotune", &mut script);
        Completions {
            shell,
            script: String::from_utf8_lossy(&script).into_owned(),
        }
    }
}

impl Answer for Completions {
    fn json(&self) -> Value {
        json!({ "shell": self.shell.to_string(), "script": self.script })
    }

    fn text(&self, page: &mut Page<'_>) -> io::Result<()> {
        page.raw(&self.script)
    }
}
