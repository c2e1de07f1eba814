//! The `autotune` binary.

mod cli;

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = cli::Cli::parse();
    cli::present(cli::answer(&cli), cli.json)
}
