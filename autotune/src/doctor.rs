//! What a machine has, what it lacks, and whether tuning can work on it.

use pagesmith_codegen::{Compiler, Place, REQUIREMENT, Search, Source, Toolchain};
use pagesmith_spec::Arch;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// All that was looked at.
#[derive(Clone, Debug, Serialize)]
pub struct Diagnosis {
    /// Whether `autotune run` can work: now, or after it has installed what is missing.
    pub ready: bool,
    /// The compiler that is used.
    pub nvrtc: Option<NvrtcFound>,
    /// Every place that was searched for a compiler, in order.
    pub searched: Vec<Searched>,
    /// The interpreter that installs the compiler where none is found.
    pub python: Option<PythonFound>,
    /// Where kernels are kept.
    pub cache: Folder,
    /// Where the compiler is installed.
    pub data: Folder,
    /// NVIDIA's driver and its devices.
    pub cuda: CudaFound,
    /// The processor, which emulates.
    pub cpu: Cpu,
    /// What is wrong or missing, with what to do.
    pub problems: Vec<Problem>,
}

/// A compiler.
#[derive(Clone, Debug, Serialize)]
pub struct NvrtcFound {
    /// Its CUDA release.
    pub version: String,
    /// The file.
    pub library: PathBuf,
    /// How it was found.
    pub origin: String,
    /// Whether it loads and compiles a kernel, or why not.
    pub works: Result<(), String>,
}

/// A place that was searched.
#[derive(Clone, Debug, Serialize)]
pub struct Searched {
    /// Which place.
    pub origin: String,
    /// Its path, where it has one.
    pub path: Option<PathBuf>,
    /// What was there.
    pub outcome: String,
}

/// A Python interpreter.
#[derive(Clone, Debug, Serialize)]
pub struct PythonFound {
    /// The executable.
    pub path: PathBuf,
    /// Its version.
    pub version: String,
    /// The version of its pip, where it has one.
    pub pip: Option<String>,
}

/// A directory that is written to.
#[derive(Clone, Debug, Serialize)]
pub struct Folder {
    /// The directory; absent when no variable says where it is.
    pub path: Option<PathBuf>,
    /// Whether it is there already.
    pub exists: bool,
    /// Whether files can be created in it, or in what will become its parent; or why not.
    pub writable: Result<(), String>,
}

/// NVIDIA's driver.
#[derive(Clone, Debug, Serialize)]
pub struct CudaFound {
    /// The newest CUDA release that the driver supports, or why there is no driver.
    pub driver: Result<String, String>,
    /// Product names of its devices, in order.
    pub devices: Vec<String>,
}

/// The processor.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Cpu {
    /// Threads that run at once.
    pub threads: usize,
    /// 256-bit integer vectors: the emulator's fast path, together with `fma`.
    pub avx2: bool,
    /// Fused multiply-add.
    pub fma: bool,
}

/// Something to do.
#[derive(Clone, Debug, Serialize)]
pub struct Problem {
    /// What is wrong.
    pub what: String,
    /// What to do.
    pub fix: String,
    /// Whether `autotune run` cannot work until it is done.
    pub blocks: bool,
}

/// Looks at this machine. Installs and changes nothing.
///
/// `cache` is the cache directory, or why there is none.
pub fn diagnose(search: &Search, cache: Result<PathBuf, String>, cuda: CudaFound) -> Diagnosis {
    let mut problems = Vec::new();
    let places = search.report();
    let python = find_python();
    let nvrtc = search.find().ok().map(try_out);
    let data = folder(search.data_dir().map(Path::to_owned));

    match &nvrtc {
        Some(found) => {
            if let Err(why) = &found.works {
                problems.push(Problem {
                    what: format!("{} does not work: {why}", found.library.display()),
                    fix: String::from(
                        "install CUDA's NVRTC 12 or newer, or set PAGESMITH_NVRTC to another one",
                    ),
                    blocks: true,
                });
            }
        }
        None => problems.extend(without_nvrtc(search, python.as_ref(), &data)),
    }
    let cache = match cache {
        Ok(path) => {
            let cache = folder(Some(path));
            if let (Some(path), Err(why)) = (&cache.path, &cache.writable) {
                problems.push(Problem {
                    what: format!("the cache {} cannot be written: {why}", path.display()),
                    fix: String::from("set PAGESMITH_CACHE or --cache to a directory that can be"),
                    blocks: true,
                });
            }
            cache
        }
        Err(why) => {
            problems.push(Problem {
                what: why.clone(),
                fix: String::from("set PAGESMITH_CACHE or --cache"),
                blocks: true,
            });
            Folder {
                path: None,
                exists: false,
                writable: Err(why),
            }
        }
    };
    let cpu = Cpu::of_this_machine();
    if !(cpu.avx2 && cpu.fma) {
        problems.push(Problem {
            what: String::from(
                "the processor has no AVX2 with FMA: emulation is several times slower",
            ),
            fix: String::from("prove on a newer machine, or on a GPU"),
            blocks: false,
        });
    }
    Diagnosis {
        ready: problems.iter().all(|problem| !problem.blocks),
        nvrtc,
        searched: places.iter().map(Searched::from).collect(),
        python,
        cache,
        data,
        cuda,
        cpu,
        problems,
    }
}

/// What stands in the way of installing a compiler, or that it will be installed.
fn without_nvrtc(search: &Search, python: Option<&PythonFound>, data: &Folder) -> Vec<Problem> {
    let by_hand = format!(
        "or `python3 -m pip install {REQUIREMENT}`, or set PAGESMITH_NVRTC to the directory of libnvrtc.so.13"
    );
    let mut problems = Vec::new();
    if let Err(wrong) = search.find()
        && matches!(wrong, pagesmith_codegen::SearchError::Explicit { .. })
    {
        problems.push(Problem {
            what: wrong.to_string(),
            fix: String::from("correct PAGESMITH_NVRTC, or unset it"),
            blocks: true,
        });
        return problems;
    }
    match python {
        None => problems.push(Problem {
            what: String::from("no NVRTC, and no python3 to install it with"),
            fix: format!("install Python 3 with pip, {by_hand}"),
            blocks: true,
        }),
        Some(PythonFound {
            pip: None, path, ..
        }) => problems.push(Problem {
            what: format!(
                "no NVRTC, and {} has no pip to install it with",
                path.display()
            ),
            fix: format!("install pip (the package python3-pip), {by_hand}"),
            blocks: true,
        }),
        Some(_) => match &data.writable {
            Ok(()) => problems.push(Problem {
                what: String::from("no NVRTC yet"),
                fix: format!(
                    "nothing: `autotune run` installs {REQUIREMENT} with pip, once (90 MB)"
                ),
                blocks: false,
            }),
            Err(why) => problems.push(Problem {
                what: format!("no NVRTC, and the data directory cannot be written: {why}"),
                fix: format!("set PAGESMITH_DATA to a directory that can be, {by_hand}"),
                blocks: true,
            }),
        },
    }
    problems
}

impl From<&Place> for Searched {
    fn from(place: &Place) -> Self {
        Searched {
            origin: place.origin.to_string(),
            path: place.path.clone(),
            outcome: match &place.outcome {
                Ok(toolchain) => format!("NVRTC {}", toolchain.version),
                Err(miss) => miss.to_string(),
            },
        }
    }
}

/// Loads a toolchain and compiles a kernel with it: a file of the right name may still be broken.
fn try_out(toolchain: Toolchain) -> NvrtcFound {
    let name = "/pagesmith/doctor.cu";
    let source = Source {
        name: name.into(),
        text: format!(
            "#line 1 \"{name}\"\nextern \"C\" __global__ void pagesmith_doctor(int* x) {{ *x = 1; }}\n"
        ),
        headers: Vec::new(),
        entries: vec!["pagesmith_doctor".into()],
        variant: None,
    };
    let mut found = NvrtcFound {
        version: toolchain.version.to_string(),
        library: toolchain.library.clone(),
        origin: toolchain.origin.to_string(),
        works: Ok(()),
    };
    found.works = Compiler::new(toolchain)
        .map_err(|error| error.to_string())
        .and_then(|compiler| {
            let compiled = compiler.compile(&source, Arch::SM_80);
            compiled.map_err(|error| error.to_string())
        })
        .map(|compiled| found.version = compiled.image.header.compiler.replace("nvrtc ", ""));
    found
}

fn find_python() -> Option<PythonFound> {
    let path = std::env::split_paths(&std::env::var_os("PATH")?)
        .map(|folder| folder.join("python3"))
        .find(|file| file.is_file())?;
    let run = |arguments: &[&str]| {
        let output = Command::new(&path)
            .args(arguments)
            .stdin(Stdio::null())
            .output()
            .ok()
            .filter(|output| output.status.success())?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.split_whitespace().nth(1).map(str::to_owned)
    };
    Some(PythonFound {
        version: run(&["--version"]).unwrap_or_else(|| String::from("unknown")),
        pip: run(&["-m", "pip", "--version"]),
        path,
    })
}

/// Whether a directory can be written, tried with a file that has no name.
fn folder(path: Option<PathBuf>) -> Folder {
    let writable = match &path {
        None => Err(String::from("no variable says where it is")),
        Some(path) => {
            let existing = path.ancestors().find(|ancestor| ancestor.exists());
            tempfile::tempfile_in(existing.unwrap_or(Path::new(".")))
                .map(drop)
                .map_err(|error| error.to_string())
        }
    };
    Folder {
        exists: path.as_ref().is_some_and(|path| path.is_dir()),
        path,
        writable,
    }
}

impl Cpu {
    fn of_this_machine() -> Self {
        #[cfg(target_arch = "x86_64")]
        let (avx2, fma) = (
            std::arch::is_x86_feature_detected!("avx2"),
            std::arch::is_x86_feature_detected!("fma"),
        );
        #[cfg(not(target_arch = "x86_64"))]
        let (avx2, fma) = (false, false);
        Cpu {
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            avx2,
            fma,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn no_driver() -> CudaFound {
        CudaFound {
            driver: Err("none".into()),
            devices: vec![],
        }
    }

    #[test]
    fn a_machine_without_a_home_is_told_which_variable_to_set() {
        let search = Search::from_vars(|_| None);
        let diagnosis = diagnose(&search, Err("cache: no home directory".into()), no_driver());
        assert!(!diagnosis.ready);
        assert!(
            diagnosis
                .problems
                .iter()
                .any(|problem| problem.fix.contains("PAGESMITH_CACHE"))
        );
    }

    #[test]
    fn a_wrong_explicit_compiler_blocks_although_python_could_install_one() {
        let folder = tempfile::tempdir().unwrap();
        let wrong = folder.path().join("nowhere");
        let search = Search::from_vars(|name| {
            (name == "PAGESMITH_NVRTC").then(|| wrong.clone().into_os_string())
        });
        let diagnosis = diagnose(&search, Ok(folder.path().to_owned()), no_driver());
        assert!(!diagnosis.ready);
        assert!(diagnosis.problems[0].what.contains("nowhere"));
    }
}
