//! Source to image: one compile gives PTX and CUBIN.

use super::diagnostic::{self, Diagnostic};
use super::library::{LoadError, Nvrtc, Program, Status, Texts};
use super::log;
use super::place::{Toolchain, Version};
use super::search::{Search, SearchError};
use crate::Source;
use crate::cubin::{self, CubinError};
use crate::source::line_directive;
use pagesmith_spec::image::ImageHeader;
use pagesmith_spec::{Arch, Image, ImageEntry, Resources};
use std::ffi::CString;

/// The options of every compile, beside the arch. They are part of [`Source::hash`].
pub(crate) const OPTIONS: [&str; 5] = [
    "--std=c++17",
    // Not cudarc's `use_fast_math`, which means `--fmad=true`.
    "--use_fast_math",
    // Device headers are written without `__device__` on every helper.
    "--device-as-default-execution-space",
    // Maps SASS to PTX to template lines; the SASS is the same with and without.
    "-lineinfo",
    "--ptxas-options=-v",
];

/// A compiled source with the compiler's log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compiled {
    /// PTX, CUBIN and what they take.
    pub image: Image,
    /// Warnings, and ptxas's report on each kernel.
    pub log: String,
}

/// A source that did not become an image.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CompileError {
    /// A text that would compile to other bytes in another working directory.
    #[error(
        "{name} does not start with an absolute `#line 1 \"/...\"`: without it the working \
         directory becomes part of PTX and CUBIN; make that its first line"
    )]
    NoLineDirective {
        /// The source or header.
        name: String,
    },
    /// A text with a NUL byte, which NVRTC cannot take.
    #[error("{name} contains a NUL byte; remove it")]
    Nul {
        /// The source or header.
        name: String,
    },
    /// The source is not valid CUDA.
    #[error("NVRTC refused {name} for {arch}:\n{}", summary(diagnostics, log))]
    Refused {
        /// The source.
        name: String,
        /// What it was compiled for.
        arch: Arch,
        /// The errors, with the lines they are about.
        diagnostics: Vec<Diagnostic>,
        /// All that the compiler said.
        log: String,
    },
    /// NVRTC failed for another reason.
    #[error("NVRTC failed to {action} {name}: {reason}{}", quoted(log))]
    Failed {
        /// What was asked of it.
        action: &'static str,
        /// The source.
        name: String,
        /// NVRTC's name of the failure.
        reason: String,
        /// All that the compiler said.
        log: String,
    },
    /// The CUBIN cannot be described.
    #[error("{name}: {error}")]
    Cubin {
        /// The source.
        name: String,
        /// Why.
        error: CubinError,
    },
    /// A kernel that the source promises is missing.
    #[error(
        "{name} defines no kernel {entry} (it defines: {}); name it in an extern \"C\" __global__",
        defined.join(", ")
    )]
    NoEntry {
        /// The source.
        name: String,
        /// The missing kernel.
        entry: String,
        /// The kernels it has.
        defined: Vec<String>,
    },
    /// ptxas did not report on a kernel, so that its spills are unknown.
    #[error("{name}: ptxas reported no properties of kernel {entry}; use NVRTC 12 or 13")]
    NoReport {
        /// The source.
        name: String,
        /// The kernel.
        entry: String,
    },
}

fn summary(diagnostics: &[Diagnostic], log: &str) -> String {
    const SHOWN: usize = 5;
    if diagnostics.is_empty() {
        return log.trim().to_owned();
    }
    let mut lines: Vec<String> = diagnostics
        .iter()
        .take(SHOWN)
        .map(|diagnostic| format!("error: {diagnostic}"))
        .collect();
    if let Some(more) = diagnostics
        .len()
        .checked_sub(SHOWN)
        .filter(|more| *more > 0)
    {
        lines.push(format!("and {more} more"));
    }
    lines.join("\n")
}

fn quoted(log: &str) -> String {
    match log.trim() {
        "" => String::new(),
        log => format!("\n{log}"),
    }
}

/// No compiler: not found, or not loadable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CompilerError {
    /// No toolchain.
    #[error(transparent)]
    Search(#[from] SearchError),
    /// A toolchain that does not load.
    #[error(transparent)]
    Load(#[from] LoadError),
}

/// A loaded NVRTC. Compiles may run on several threads at once; they scale with the cores.
pub struct Compiler {
    nvrtc: Nvrtc,
    toolchain: Toolchain,
}

impl std::fmt::Debug for Compiler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Compiler").field(&self.toolchain).finish()
    }
}

impl Compiler {
    /// Loads a toolchain.
    ///
    /// # Errors
    /// When the loader refuses it, or its files do not belong together.
    pub fn new(toolchain: Toolchain) -> Result<Self, LoadError> {
        Ok(Compiler {
            nvrtc: Nvrtc::load(&toolchain)?,
            toolchain,
        })
    }

    /// Loads the first toolchain that `search` finds. Installs nothing.
    ///
    /// # Errors
    /// When there is none, or it does not load.
    pub fn find(search: &Search) -> Result<Self, CompilerError> {
        Ok(Compiler::new(search.find()?)?)
    }

    /// What was loaded, and from where.
    pub fn toolchain(&self) -> &Toolchain {
        &self.toolchain
    }

    /// The CUDA release it is of.
    pub fn version(&self) -> Version {
        self.toolchain.version
    }

    /// Compiles `source` for `arch`, once, to PTX and CUBIN.
    ///
    /// The result depends on the source, the arch and the compiler's build only.
    ///
    /// # Errors
    /// When the source is not valid CUDA, or lacks a kernel that it promises.
    pub fn compile(&self, source: &Source, arch: Arch) -> Result<Compiled, CompileError> {
        let program = self.program(source)?;
        let mut options = vec![c_string("the arch", arch.nvrtc_flag())?];
        for option in OPTIONS {
            options.push(c_string(option, option)?);
        }
        let compiled = program.compile(&options);
        let log = program
            .log()
            .map_err(|status| self.failed("give the log of", source, status, String::new()))?;
        match compiled {
            Ok(()) => {}
            Err(Status::COMPILATION) => {
                return Err(CompileError::Refused {
                    name: source.name.clone(),
                    arch,
                    diagnostics: diagnostic::errors(&log, source),
                    log,
                });
            }
            Err(status) => return Err(self.failed("compile", source, status, log)),
        }
        let ptx = program
            .ptx()
            .map_err(|status| self.failed("give the PTX of", source, status, log.clone()))?;
        let cubin = program
            .cubin()
            .map_err(|status| self.failed("give the CUBIN of", source, status, log.clone()))?;
        let header = ImageHeader {
            arch,
            entries: entries(source, &cubin, &log)?,
            abi: pagesmith_spec::abi::hash(),
            source: source.hash(arch),
            variant: source.variant,
            compiler: self.build(&ptx),
        };
        Ok(Compiled {
            image: Image { header, ptx, cubin },
            log,
        })
    }

    fn program(&self, source: &Source) -> Result<Program<'_>, CompileError> {
        let headers = source
            .headers
            .iter()
            .map(|header| {
                let text = absolute(&header.name, &header.text)?;
                Ok((c_string(&header.name, header.name.as_str())?, text))
            })
            .collect::<Result<_, CompileError>>()?;
        let texts = Texts {
            name: c_string(&source.name, source.name.as_str())?,
            text: absolute(&source.name, &source.text)?,
            headers,
        };
        Program::new(&self.nvrtc, texts)
            .map_err(|status| self.failed("take", source, status, String::new()))
    }

    /// The compiler's build as PTX tells it, such as `nvrtc 13.0.88`: a patch release may generate other
    /// code.
    fn build(&self, ptx: &str) -> String {
        let build = ptx
            .lines()
            .take_while(|line| line.starts_with("//"))
            .find_map(|line| line.split_once(", V"))
            .map(|(_, build)| build.trim().to_owned());
        format!(
            "nvrtc {}",
            build.unwrap_or_else(|| self.version().to_string())
        )
    }

    fn failed(
        &self,
        action: &'static str,
        source: &Source,
        status: Status,
        log: String,
    ) -> CompileError {
        CompileError::Failed {
            action,
            name: source.name.clone(),
            reason: self.nvrtc.describe(status),
            log,
        }
    }
}

/// The text for NVRTC, provided that it names itself by an absolute path.
fn absolute(name: &str, text: &str) -> Result<CString, CompileError> {
    let named = text
        .lines()
        .next()
        .and_then(line_directive)
        .is_some_and(|(file, _)| file.starts_with('/'));
    if !named {
        return Err(CompileError::NoLineDirective {
            name: name.to_owned(),
        });
    }
    c_string(name, text)
}

fn c_string(name: &str, text: impl Into<Vec<u8>>) -> Result<CString, CompileError> {
    CString::new(text).map_err(|_| CompileError::Nul {
        name: name.to_owned(),
    })
}

fn entries(source: &Source, cubin: &[u8], log: &str) -> Result<Vec<ImageEntry>, CompileError> {
    let kernels = cubin::kernels(cubin).map_err(|error| CompileError::Cubin {
        name: source.name.clone(),
        error,
    })?;
    if let Some(entry) = source
        .entries
        .iter()
        .find(|entry| kernels.iter().all(|kernel| kernel.name != **entry))
    {
        return Err(CompileError::NoEntry {
            name: source.name.clone(),
            entry: entry.clone(),
            defined: kernels.into_iter().map(|kernel| kernel.name).collect(),
        });
    }
    let spills = log::spills(log);
    kernels
        .into_iter()
        .map(|kernel| {
            let report =
                spills
                    .get(kernel.name.as_str())
                    .ok_or_else(|| CompileError::NoReport {
                        name: source.name.clone(),
                        entry: kernel.name.clone(),
                    })?;
            Ok(ImageEntry {
                resources: Resources {
                    registers: kernel.registers,
                    spill_bytes: report
                        .spill_store_bytes
                        .saturating_add(report.spill_load_bytes),
                    stack_bytes: kernel.stack_bytes,
                    shared_bytes: kernel.shared_bytes,
                    barriers: kernel.barriers,
                },
                name: kernel.name,
            })
        })
        .collect()
}
