//! What the integration tests share.

use pagesmith_codegen::{Compiler, Header, Provisioning, Search, Source, provision};
use std::sync::Arc;

/// The compiler of this machine; installed first where there is none, as the binaries do.
pub fn compiler() -> Compiler {
    let toolchain = provision(
        &Search::from_env(),
        Provisioning::Allowed,
        &mut |progress| {
            eprintln!("{progress}");
        },
    )
    .unwrap_or_else(|error| panic!("{error}"));
    Compiler::new(toolchain).unwrap_or_else(|error| panic!("{error}"))
}

/// A source of one file that calls itself `/pagesmith/test.cu`.
pub fn source(body: &str, entries: &[&str], headers: &[(&str, &str)]) -> Source {
    Source {
        name: "/pagesmith/test.cu".into(),
        text: format!("#line 1 \"/pagesmith/test.cu\"\n{body}"),
        headers: headers
            .iter()
            .map(|(name, text)| {
                Arc::new(Header {
                    name: (*name).into(),
                    text: (*text).into(),
                })
            })
            .collect(),
        entries: entries.iter().map(|entry| (*entry).to_owned()).collect(),
    }
}
