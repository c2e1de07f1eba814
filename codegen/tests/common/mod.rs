//! What the integration tests share.

use pagesmith_codegen::{Compiler, Provisioning, Search, provision};

/// The compiler of this machine; installed first where there is none, as the binaries do.
pub(crate) fn compiler() -> Compiler {
    let toolchain = provision(&Search::from_env(), Provisioning::Allowed, &mut |_| {})
        .unwrap_or_else(|error| panic!("{error}"));
    Compiler::new(toolchain).unwrap_or_else(|error| panic!("{error}"))
}
