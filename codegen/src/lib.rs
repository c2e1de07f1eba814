//! Spec and tuning to CUDA source to image.
//!
//! ```text
//!   Variant ──render──> Source ──Compiler::compile──> Compiled { Image, log }
//!              │          │             ^
//!   templates and         │             └── Toolchain <── Search::find, or provision (binaries only)
//!   headers of            │
//!   pagesmith-kernels     └── Source::hash: what a cached image is recognised by, without compiling
//!
//!   forge = render + compile          cubin::kernels: what a compiled kernel takes, from its ELF
//! ```
//!
//! The CUDA headers reach NVRTC from memory: no include path, toolkit, driver or GPU is needed.
//!
//! ```no_run
//! use pagesmith_codegen::{Compiler, Search, forge};
//! use pagesmith_spec::{Arch, ModelShape, Settings, TuningSpace, Variant};
//!
//! let shape = ModelShape::by_name("llama-3-8b")?;
//! let spec = Settings::default().kernels(&shape)?.remove(0);
//! let space = TuningSpace::enumerate(&spec, Arch::SM_80);
//! let variant = Variant::new(spec, space.legal()[0])?;
//!
//! let compiler = Compiler::find(&Search::from_env())?;
//! let image = forge(&variant, Arch::SM_80, &compiler)?;
//! println!("{} registers", image.header.entries[0].resources.registers);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod cubin;
mod forge;
mod nvrtc;
mod render;
mod source;

pub use forge::{ForgeError, ForgeErrorKind, forge};
pub use nvrtc::{
    CompileError, Compiled, Compiler, CompilerError, Diagnostic, LoadError, Miss, Origin, Place,
    Progress, ProvisionError, Provisioning, REQUIREMENT, Search, SearchError, Toolchain, Version,
    provision,
};
pub use render::{RenderError, Templates, render, render_echo};
pub use source::{Header, Source};
