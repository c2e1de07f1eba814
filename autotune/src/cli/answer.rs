//! One answer a verb, for people and for programs alike.

use super::failure::Failure;
use super::page::{Look, Page};
use serde_json::Value;
use std::io::{self, Write};
use std::process::ExitCode;

/// What a verb found out.
pub(crate) trait Answer {
    /// For programs: one object.
    fn json(&self) -> Value;

    /// For people.
    fn text(&self, page: &mut Page<'_>) -> io::Result<()>;

    /// Whether everything asked for came out well: exit code 0, else 1.
    fn is_good(&self) -> bool {
        true
    }
}

/// Prints an answer or a failure, and gives the exit code.
pub(crate) fn present(outcome: Result<Box<dyn Answer>, Failure>, json: bool) -> ExitCode {
    let mut stdout = io::BufWriter::new(io::stdout().lock());
    let (written, exit) = match outcome {
        Ok(answer) => {
            let written = if json {
                writeln!(stdout, "{:#}", answer.json())
            } else {
                answer.text(&mut Page::new(&mut stdout, Look::of_stdout()))
            };
            let exit = if answer.is_good() {
                ExitCode::SUCCESS
            } else {
                ExitCode::FAILURE
            };
            (written, exit)
        }
        Err(failure) => {
            let written = if json {
                writeln!(stdout, "{:#}", failure.json())
            } else {
                Ok(())
            };
            complain(&failure);
            (written, failure.exit())
        }
    };
    match written.and_then(|()| stdout.flush()) {
        Ok(()) => exit,
        // The reader has seen enough, as `head` does.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => exit,
        Err(error) => {
            complain(&format_args!("could not write to standard output: {error}"));
            ExitCode::FAILURE
        }
    }
}

/// `error: …` on standard error, where a failed write has nobody left to tell.
fn complain(what: &dyn std::fmt::Display) {
    let red = anstyle::AnsiColor::Red.on_default().bold();
    let mut stderr = anstream::stderr();
    let _ = writeln!(stderr, "{red}error:{red:#} {what}");
}
