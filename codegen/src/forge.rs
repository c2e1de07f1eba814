//! Variant to image in one step.

use crate::{CompileError, Compiler, RenderError, render};
use pagesmith_spec::{Arch, Image, Variant};

/// A variant that did not become an image.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{variant}: {kind}")]
pub struct ForgeError {
    /// The variant's id.
    pub variant: String,
    /// What went wrong.
    pub kind: ForgeErrorKind,
}

/// The step that failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ForgeErrorKind {
    /// The template.
    #[error(transparent)]
    Render(#[from] RenderError),
    /// The compiler.
    #[error(transparent)]
    Compile(#[from] CompileError),
}

/// Renders and compiles a variant for `arch`.
///
/// # Errors
/// When its template does not render, or the source does not compile.
pub fn forge(variant: &Variant, arch: Arch, compiler: &Compiler) -> Result<Image, ForgeError> {
    let image = || -> Result<Image, ForgeErrorKind> {
        let source = render(variant)?;
        Ok(compiler.compile(&source, arch)?.image)
    };
    image().map_err(|kind| ForgeError {
        variant: variant.id(),
        kind,
    })
}
