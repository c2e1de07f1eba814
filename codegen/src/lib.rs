//! codegen

pub mod cubin;
mod nvrtc;
mod source;

pub use nvrtc::{
    CompileError, Compiled, Compiler, CompilerError, Diagnostic, LoadError, Miss, Origin, Place,
    Progress, ProvisionError, Provisioning, REQUIREMENT, Search, SearchError, Toolchain, Version,
    provision,
};
pub use source::{Header, Source};
