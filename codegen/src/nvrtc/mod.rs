//! NVRTC: found or installed, loaded, and put to work.
//!
//! ```text
//! Search ──find──> Toolchain ──load──> Compiler ──compile(Source, Arch)──> Compiled { Image, log }
//!    └──provision (binaries only)──^
//! ```

mod ask;
mod compiler;
mod diagnostic;
mod library;
mod log;
mod place;
mod provision;
mod search;

pub(crate) use compiler::OPTIONS;
pub use compiler::{CompileError, Compiled, Compiler, CompilerError};
pub use diagnostic::Diagnostic;
pub use library::LoadError;
pub use place::{Miss, Origin, Toolchain, Version};
pub use provision::{Progress, ProvisionError, Provisioning, REQUIREMENT, provision};
pub use search::{Place, Search, SearchError};
