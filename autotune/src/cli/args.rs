//! The command line, declared once: parsing, `--help` and completions all come from here.

use clap::builder::styling::{AnsiColor, Styles};
use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};
use pagesmith_autotune::Effort;
use pagesmith_spec::{KvDtype, QueryDtype, TableForm};
use std::path::PathBuf;

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold())
    .placeholder(AnsiColor::Cyan.on_default());

const AFTER: &str = "\
Exit codes: 0 done, 1 something failed, 2 bad usage or input.
Environment: PAGESMITH_CACHE (cache), PAGESMITH_NVRTC (compiler), PAGESMITH_DATA (where NVRTC is installed), NO_COLOR.";

/// Tunes paged-attention kernels for a model and a GPU, on any machine.
#[derive(Debug, Parser)]
#[command(name = "autotune", version, styles = STYLES, after_help = AFTER, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) verb: Verb,

    /// Print one JSON object on stdout instead of text
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Compile, prove and rank the kernels of a model, and write the kernel cache
    Run(RunArgs),
    /// The half of `run` for build machines: compile, prove on the emulator, rank by model
    Compile(CompileArgs),
    /// The half of `run` for GPU machines: prove on the GPU, time, rank. Needs no compiler
    Measure(MeasureArgs),
    /// Prove a cache again, or a matrix of everything the templates can do
    Verify(VerifyArgs),
    /// Look into a kernel cache
    Cache(CacheArgs),
    /// Show one kernel: source, PTX, resources and record
    Show(ShowArgs),
    /// Run one decode of a kernel on the GPU, for profilers and sanitizers
    #[command(hide = true)]
    Launch(LaunchArgs),
    /// Say what was found on this machine, what is missing and how to fix it
    Doctor(DoctorArgs),
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// A built-in name, a Hugging Face config.json, or a GGUF file
    #[arg(long, value_name = "NAME|FILE", value_hint = ValueHint::AnyPath)]
    pub(crate) model: String,

    #[command(flatten)]
    pub(crate) choices: Choices,

    /// Where kernels are proved and timed: emulated, cuda:N, or auto (a CUDA device of the GPU's
    /// name where there is one)
    #[arg(long, value_name = "DEVICE", default_value = "auto")]
    pub(crate) device: DeviceChoice,

    #[command(flatten)]
    pub(crate) build: Build,

    #[command(flatten)]
    pub(crate) cache: CacheDir,
}

#[derive(Debug, Args)]
pub(crate) struct CompileArgs {
    /// A built-in name, a Hugging Face config.json, or a GGUF file
    #[arg(long, value_name = "NAME|FILE", required_unless_present = "matrix", value_hint = ValueHint::AnyPath)]
    pub(crate) model: Option<String>,

    /// Compile a matrix of everything the templates can do instead of one model's kernels
    #[arg(long, value_name = "STRENGTH", conflicts_with_all = ["model", "block_size", "kv_dtype", "query_dtype", "table", "lse", "effort"])]
    pub(crate) matrix: Option<Strength>,

    #[command(flatten)]
    pub(crate) choices: Choices,

    #[command(flatten)]
    pub(crate) build: Build,

    #[command(flatten)]
    pub(crate) cache: CacheDir,
}

/// A server's choices, the GPU, and how hard to try.
#[derive(Debug, Args)]
pub(crate) struct Choices {
    /// The GPU that the kernels are for
    #[arg(long, default_value = "a100-sxm4-80gb")]
    pub(crate) gpu: String,

    /// Tokens per KV block
    #[arg(long, value_name = "TOKENS", default_value_t = 16)]
    pub(crate) block_size: u32,

    /// KV cache dtypes [default: the query dtype and fp8_e4m3]
    #[arg(long, value_name = "DTYPE,...", value_delimiter = ',')]
    pub(crate) kv_dtype: Vec<KvDtype>,

    /// Query and output dtype: bf16 or f16
    #[arg(long, value_name = "DTYPE", default_value = "bf16")]
    pub(crate) query_dtype: QueryDtype,

    /// Block tables: dense (vLLM) or csr (FlashInfer)
    #[arg(long, value_name = "FORM", default_value = "dense", value_parser = table_form)]
    pub(crate) table: TableForm,

    /// Kernels that also write the log-sum-exp
    #[arg(long)]
    pub(crate) lse: bool,

    /// How many tunings are tried
    #[arg(long, value_enum, default_value = "quick")]
    pub(crate) effort: EffortChoice,
}

/// How kernels are built.
#[derive(Debug, Args)]
pub(crate) struct Build {
    /// Say what would be tried and what is excluded and why; compile and write nothing
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Never download NVRTC
    #[arg(long)]
    pub(crate) offline: bool,

    /// Threads [default: one per core]
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) jobs: Option<u16>,
}

#[derive(Debug, Args)]
pub(crate) struct CacheDir {
    /// The kernel cache [default: $XDG_CACHE_HOME/pagesmith or ~/.cache/pagesmith]
    #[arg(long = "cache", value_name = "DIR", env = "PAGESMITH_CACHE", hide_env_values = true, value_hint = ValueHint::DirPath)]
    pub(crate) path: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct MeasureArgs {
    #[command(flatten)]
    pub(crate) cache: CacheDir,

    /// The CUDA device
    #[arg(long, value_name = "DEVICE", default_value = "cuda:0")]
    pub(crate) device: DeviceChoice,
}

#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {
    /// Prove a matrix that covers all pairs or triples of choices, instead of a cache
    #[arg(long, value_name = "STRENGTH")]
    pub(crate) matrix: Option<Strength>,

    /// The GPU [default: every GPU in the cache; a100-sxm4-80gb for a matrix]
    #[arg(long)]
    pub(crate) gpu: Option<String>,

    /// Where kernels are proved: emulated or cuda:N
    #[arg(long, value_name = "DEVICE", default_value = "emulated")]
    pub(crate) device: DeviceChoice,

    #[command(flatten)]
    pub(crate) cache: CacheDir,

    /// Never download NVRTC
    #[arg(long)]
    pub(crate) offline: bool,

    /// Threads [default: one per core]
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) jobs: Option<u16>,

    /// Seed of the random inputs [default: a fresh one, printed with the result]
    #[arg(long)]
    pub(crate) seed: Option<u64>,
}

#[derive(Debug, Args)]
pub(crate) struct CacheArgs {
    #[command(subcommand)]
    pub(crate) verb: CacheVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CacheVerb {
    /// List the kernels of a cache, best first
    Ls(InCache),
    /// Check that every record and image is intact
    Verify(InCache),
    /// Print the directory of the cache
    Dir(InCache),
}

#[derive(Debug, Args)]
pub(crate) struct InCache {
    /// Only this GPU [default: every GPU in the cache]
    #[arg(long)]
    pub(crate) gpu: Option<String>,

    #[command(flatten)]
    pub(crate) cache: CacheDir,
}

#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// A kernel id, or the unique beginning of one
    pub(crate) kernel: String,

    /// Only the CUDA source
    #[arg(long, conflicts_with_all = ["ptx", "json"])]
    pub(crate) source: bool,

    /// Only the PTX
    #[arg(long, conflicts_with = "json")]
    pub(crate) ptx: bool,

    #[command(flatten)]
    pub(crate) place: InCache,
}

#[derive(Debug, Args)]
pub(crate) struct LaunchArgs {
    /// A kernel id, or the unique beginning of one
    pub(crate) kernel: String,

    /// The CUDA device
    #[arg(long, value_name = "DEVICE", default_value = "cuda:0")]
    pub(crate) device: DeviceChoice,

    #[command(flatten)]
    pub(crate) cache: CacheDir,
}

#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    #[command(flatten)]
    pub(crate) cache: CacheDir,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum EffortChoice {
    /// About a dozen a spec
    Quick,
    /// Every legal one
    Balanced,
}

impl From<EffortChoice> for Effort {
    fn from(choice: EffortChoice) -> Self {
        match choice {
            EffortChoice::Quick => Effort::Quick,
            EffortChoice::Balanced => Effort::Balanced,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Strength {
    /// All pairs of choices occur
    #[value(name = "pairwise")]
    Pairwise,
    /// All triples of choices occur
    #[value(name = "3wise")]
    ThreeWise,
}

impl Strength {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Strength::Pairwise => "pairwise",
            Strength::ThreeWise => "3wise",
        }
    }
}

impl From<Strength> for pagesmith_prove::matrix::Strength {
    fn from(strength: Strength) -> Self {
        match strength {
            Strength::Pairwise => Self::Pairwise,
            Strength::ThreeWise => Self::ThreeWise,
        }
    }
}

/// Where kernels run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DeviceChoice {
    Auto,
    Emulated,
    Cuda(usize),
}

impl std::str::FromStr for DeviceChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(DeviceChoice::Auto),
            "emulated" => Ok(DeviceChoice::Emulated),
            "cuda" => Ok(DeviceChoice::Cuda(0)),
            _ => text
                .strip_prefix("cuda:")
                .and_then(|ordinal| ordinal.parse().ok())
                .map(DeviceChoice::Cuda)
                .ok_or_else(|| String::from("use auto, emulated, or cuda:N such as cuda:0")),
        }
    }
}

fn table_form(text: &str) -> Result<TableForm, String> {
    TableForm::ALL
        .into_iter()
        .find(|form| form.token() == text)
        .ok_or_else(|| String::from("use dense or csr"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definition_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn devices_are_named_as_cuda_numbers_them() {
        assert_eq!("cuda:3".parse(), Ok(DeviceChoice::Cuda(3)));
        assert_eq!("emulated".parse(), Ok(DeviceChoice::Emulated));
        for wrong in ["", "cuda:", "cuda:x", "gpu", "cuda:-1"] {
            assert!(wrong.parse::<DeviceChoice>().is_err(), "{wrong}");
        }
    }
}
