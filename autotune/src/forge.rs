//! From a variant to an image: rendered, then compiled unless the compiler had to spill.

use crate::TuneError;
use pagesmith_codegen::{
    CompileError, Compiler, Progress, Provisioning, REQUIREMENT, RenderError, Search, Source,
    provision, render,
};
use pagesmith_spec::{Arch, ContentHash, Exclusion, Image, Variant};
use std::sync::OnceLock;

/// A variant with its source.
#[derive(Clone, Debug)]
pub struct Rendered {
    /// The variant.
    pub variant: Variant,
    /// CUDA C++ with its headers.
    pub source: Source,
    /// Identifies source, headers and options, for one arch.
    pub hash: ContentHash,
}

/// Renders a variant for `arch`.
///
/// # Errors
/// When the templates are wrong.
pub fn rendered(variant: Variant, arch: Arch) -> Result<Rendered, RenderError> {
    let source = render(&variant)?;
    Ok(Rendered {
        hash: source.hash(arch),
        variant,
        source,
    })
}

/// Compiles a source, and refuses the image when any of its kernels spills.
///
/// # Errors
/// When the compiler refuses the source. A spill is no error but an [`Exclusion`].
pub fn forge(
    compiler: &Compiler,
    rendered: &Rendered,
    arch: Arch,
) -> Result<Result<Image, Exclusion>, CompileError> {
    let image = compiler.compile(&rendered.source, arch)?.image;
    Ok(match spilled(&image) {
        0 => Ok(image),
        bytes => Err(Exclusion::Spills { bytes }),
    })
}

/// Bytes that the kernels of an image spill, a thread.
pub fn spilled(image: &Image) -> u32 {
    image
        .header
        .entries
        .iter()
        .map(|entry| entry.resources.spill_bytes)
        .sum()
}

/// The compiler, found or installed when it is first needed: a run that reuses everything needs none.
pub struct Toolshop<'a> {
    search: Search,
    provisioning: Provisioning,
    tell: &'a (dyn Fn(Progress) + Sync),
    release: OnceLock<String>,
    compiler: OnceLock<Result<Compiler, String>>,
}

impl std::fmt::Debug for Toolshop<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Toolshop")
            .field("search", &self.search)
            .field("provisioning", &self.provisioning)
            .finish_non_exhaustive()
    }
}

impl<'a> Toolshop<'a> {
    /// Nothing is searched or loaded yet. `tell` hears of an installation.
    pub fn new(
        search: Search,
        provisioning: Provisioning,
        tell: &'a (dyn Fn(Progress) + Sync),
    ) -> Self {
        Toolshop {
            search,
            provisioning,
            tell,
            release: OnceLock::new(),
            compiler: OnceLock::new(),
        }
    }

    /// The release that compiles here, such as `13.0`: the one that is installed, or else the one that
    /// would be. Nothing is loaded for it.
    pub fn release(&self) -> &str {
        self.release.get_or_init(|| match self.search.find() {
            Ok(toolchain) => toolchain.version.to_string(),
            Err(_) => pinned_release(),
        })
    }

    /// Whether an image of `compiler`, such as `nvrtc 13.0.88`, is of the release that compiles here.
    pub fn would_make(&self, compiler: &str) -> bool {
        compiler
            .strip_prefix("nvrtc ")
            .and_then(|build| build.strip_prefix(self.release()))
            .is_some_and(|patch| patch.is_empty() || patch.starts_with('.'))
    }

    /// Identifies a source together with the release that compiles it: what a spill depends on.
    pub fn judged(&self, source: ContentHash) -> ContentHash {
        ContentHash::of(
            "pagesmith-judged-1",
            &[source.as_bytes(), self.release().as_bytes()],
        )
    }

    /// The loaded compiler.
    ///
    /// # Errors
    /// When there is none and none can be installed.
    pub fn compiler(&self) -> Result<&Compiler, TuneError> {
        self.compiler
            .get_or_init(|| {
                let toolchain = provision(&self.search, self.provisioning, &mut |progress| {
                    (self.tell)(progress);
                })
                .map_err(|error| error.to_string())?;
                Compiler::new(toolchain).map_err(|error| error.to_string())
            })
            .as_ref()
            .map_err(|reason| TuneError::NoCompiler(reason.clone()))
    }
}

/// `13.0` of the pinned requirement `nvidia-cuda-nvrtc==13.0.88`.
fn pinned_release() -> String {
    let version = REQUIREMENT.rsplit('=').next().unwrap_or_default();
    version.split('.').take(2).collect::<Vec<_>>().join(".")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shop() -> Toolshop<'static> {
        // No variable is set: whatever the loader has, or the pinned release.
        Toolshop::new(Search::from_vars(|_| None), Provisioning::Offline, &|_| {})
    }

    #[test]
    fn an_image_is_reusable_when_its_release_compiles_here_and_no_other() {
        let shop = shop();
        let release = shop.release().to_owned();
        assert!(shop.would_make(&format!("nvrtc {release}.88")));
        assert!(shop.would_make(&format!("nvrtc {release}")));
        // 13.0 is not 13.01, nor the other way round.
        assert!(!shop.would_make(&format!("nvrtc {release}1")));
        assert!(!shop.would_make("nvrtc 9.9.9"));
        assert!(!shop.would_make("ptxas 13.0"));
    }

    #[test]
    fn the_pinned_release_is_a_major_and_a_minor_number() {
        let pinned = pinned_release();
        let numbers: Vec<u32> = pinned.split('.').map(|n| n.parse().unwrap()).collect();
        assert_eq!(numbers.len(), 2, "{pinned}");
    }
}
