//! Installing the pinned NVRTC wheel into pagesmith's data directory.
//!
//! For binaries: a library never downloads anything behind its caller's back. The wheel is fetched by
//! pip, so that mirrors, proxies and certificates configured for pip apply, and is refused unless its
//! hash is the pinned one. It is unpacked beside its final place and renamed into it under a lock:
//! a process that is killed leaves nothing that a search would find.

use super::place::{Origin, Toolchain, look_below};
use super::search::{Search, SearchError};
use std::fmt;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The pinned requirement. 13.0, because an installed driver refuses PTX that is newer than itself and
/// driver 580, the oldest still maintained, is CUDA 13.0.
pub const REQUIREMENT: &str = "nvidia-cuda-nvrtc==13.0.88";

/// The wheels of [`REQUIREMENT`] on PyPI, by the machine they are for.
const SHA256: [(&str, &str); 2] = [
    (
        "x86_64",
        "ad9b6d2ead2435f11cbb6868809d2adeeee302e9bb94bcf0539c7a40d80e8575",
    ),
    (
        "aarch64",
        "d27f20a0ca67a4bb34268a5e951033496c5b74870b868bacd046b1b8e0c3267b",
    ),
];

/// Variables that make pip refuse `--target` or put the files elsewhere.
const CONTRARY_TO_TARGET: [&str; 5] = [
    "PIP_TARGET",
    "PIP_USER",
    "PIP_PREFIX",
    "PIP_ROOT",
    "PIP_REQUIRE_VIRTUALENV",
];

/// Whether NVRTC may be installed when the search finds none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Provisioning {
    /// Install it.
    Allowed,
    /// Download nothing.
    Offline,
}

/// What [`provision`] is doing, for a binary to show.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Progress {
    /// Another process is installing; waiting for it.
    Waiting {
        /// The lock it holds.
        lock: PathBuf,
    },
    /// pip is downloading and unpacking the wheel (about 90 MB).
    Installing {
        /// Where it will be.
        folder: PathBuf,
    },
    /// Installed.
    Installed {
        /// What is there now.
        toolchain: Toolchain,
    },
}

impl fmt::Display for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Progress::Waiting { lock } => write!(
                f,
                "waiting for another process to install NVRTC (lock {})",
                lock.display()
            ),
            Progress::Installing { folder } => write!(
                f,
                "installing {REQUIREMENT} with pip (about 90 MB) into {}",
                folder.display()
            ),
            Progress::Installed { toolchain } => write!(f, "installed {toolchain}"),
        }
    }
}

/// NVRTC was not found and could not be installed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProvisionError {
    /// The search failed for a reason that installing does not cure.
    #[error(transparent)]
    Search(SearchError),
    /// Installing is forbidden.
    #[error("{0}\n(not installed automatically: offline)")]
    Offline(SearchError),
    /// There is no wheel for this machine.
    #[error(
        "no NVRTC wheel is pinned for {os} on {arch}; install CUDA's NVRTC 12 or newer and set \
         PAGESMITH_NVRTC to its directory"
    )]
    Platform {
        /// The operating system.
        os: &'static str,
        /// The processor.
        arch: &'static str,
    },
    /// No variable says where the data directory is.
    #[error("no data directory: set PAGESMITH_DATA, XDG_DATA_HOME or HOME")]
    NoDataDir,
    /// There is no Python.
    #[error(
        "no python3 on PATH to install {REQUIREMENT} with; install Python with pip, or set \
         PAGESMITH_NVRTC to the directory of libnvrtc.so.13"
    )]
    NoPython,
    /// Python has no pip.
    #[error(
        "{} has no pip to install {REQUIREMENT} with; install pip (`python3 -m ensurepip` or the \
         package python3-pip), or set PAGESMITH_NVRTC to the directory of libnvrtc.so.13",
        python.display()
    )]
    NoPip {
        /// The interpreter.
        python: PathBuf,
    },
    /// pip failed.
    #[error(
        "`{command}` failed: {reason}\nCheck the network and pip's index, or set PAGESMITH_NVRTC to the \
         directory of libnvrtc.so.13"
    )]
    Pip {
        /// What was run.
        command: String,
        /// The end of what it wrote.
        reason: String,
    },
    /// The wheel was installed and holds no NVRTC.
    #[error("pip installed {REQUIREMENT} into {}, and no NVRTC is there: {miss}", folder.display())]
    Incomplete {
        /// Where it was unpacked.
        folder: PathBuf,
        /// What is missing.
        miss: super::Miss,
    },
    /// The data directory could not be written.
    #[error("could not {action} {}: {source}; set PAGESMITH_DATA to a directory that can be written", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On which path.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// The toolchain that `search` finds; where it finds none and `provisioning` allows it, the pinned
/// wheel is installed into pagesmith's data directory first.
///
/// ```no_run
/// use pagesmith_codegen::{Provisioning, Search, provision};
///
/// let search = Search::from_env();
/// let toolchain = provision(&search, Provisioning::Allowed, &mut |progress| eprintln!("{progress}"))?;
/// # Ok::<(), pagesmith_codegen::ProvisionError>(())
/// ```
///
/// # Errors
/// When `PAGESMITH_NVRTC` is wrong, installing is forbidden or not possible here, or it fails. Nothing
/// half-installed stays behind.
pub fn provision(
    search: &Search,
    provisioning: Provisioning,
    progress: &mut dyn FnMut(Progress),
) -> Result<Toolchain, ProvisionError> {
    let missing = match search.find() {
        Ok(toolchain) => return Ok(toolchain),
        Err(error @ SearchError::NotFound { .. }) => error,
        Err(error) => return Err(ProvisionError::Search(error)),
    };
    if provisioning == Provisioning::Offline {
        return Err(ProvisionError::Offline(missing));
    }
    let hash = SHA256
        .iter()
        .find(|(arch, _)| *arch == std::env::consts::ARCH && cfg!(target_os = "linux"))
        .map(|(_, hash)| *hash)
        .ok_or(ProvisionError::Platform {
            os: std::env::consts::OS,
            arch: std::env::consts::ARCH,
        })?;
    let python = search
        .executable("python3")
        .ok_or(ProvisionError::NoPython)?;
    let folder = install_folder(search.data_dir().ok_or(ProvisionError::NoDataDir)?);
    let parent = folder.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(parent).map_err(failed("create", parent))?;

    let _lock = lock(&parent.join(".lock"), progress)?;
    // Another process may have finished while this one waited.
    if let Ok(toolchain) = look_below(&folder, Origin::DataDir) {
        return Ok(toolchain);
    }
    progress(Progress::Installing {
        folder: folder.clone(),
    });
    remove_leftovers(parent);
    let staging = tempfile::Builder::new()
        .prefix(STAGING)
        .tempdir_in(parent)
        .map_err(failed("create a folder in", parent))?;
    let toolchain_folder = staging.path().join("toolchain");
    pip_install(&python, hash, staging.path(), &toolchain_folder)?;
    look_below(&toolchain_folder, Origin::DataDir).map_err(|miss| ProvisionError::Incomplete {
        folder: toolchain_folder.clone(),
        miss,
    })?;
    if folder.exists() {
        // Something without an NVRTC in it is in the way, such as a half-deleted installation.
        std::fs::remove_dir_all(&folder).map_err(failed("replace", &folder))?;
    }
    std::fs::rename(&toolchain_folder, &folder)
        .map_err(failed("move the toolchain to", &folder))?;
    let toolchain =
        look_below(&folder, Origin::DataDir).map_err(|miss| ProvisionError::Incomplete {
            folder: folder.clone(),
            miss,
        })?;
    progress(Progress::Installed {
        toolchain: toolchain.clone(),
    });
    Ok(toolchain)
}

const STAGING: &str = ".installing-";

/// Where the pinned wheel is installed below a data directory.
pub(super) fn install_folder(data_dir: &Path) -> PathBuf {
    data_dir
        .join("toolchain")
        .join(REQUIREMENT.replace("==", "-"))
}

fn failed(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> ProvisionError {
    let path = path.to_owned();
    move |source| ProvisionError::Io {
        action,
        path,
        source,
    }
}

fn lock(path: &Path, progress: &mut dyn FnMut(Progress)) -> Result<File, ProvisionError> {
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(path)
        .map_err(failed("open the lock", path))?;
    if file.try_lock().is_err() {
        progress(Progress::Waiting {
            lock: path.to_owned(),
        });
        file.lock().map_err(failed("lock", path))?;
    }
    Ok(file)
}

/// Removes what a killed process left, under the lock that says nobody is installing now. A leftover
/// that cannot be removed costs space and nothing else.
fn remove_leftovers(parent: &Path) {
    for entry in parent.read_dir().into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(STAGING) {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

fn pip_install(
    python: &Path,
    sha256: &str,
    scratch: &Path,
    target: &Path,
) -> Result<(), ProvisionError> {
    // Hashes are accepted in a requirements file only.
    let requirements = scratch.join("requirements.txt");
    std::fs::write(
        &requirements,
        format!("{REQUIREMENT} --hash=sha256:{sha256}\n"),
    )
    .map_err(failed("write", &requirements))?;
    let mut command = Command::new(python);
    command
        .args(["-m", "pip", "install", "--require-hashes", "--no-deps"])
        .args(["--only-binary", ":all:", "--no-input", "--quiet"])
        .args(["--disable-pip-version-check", "--no-warn-script-location"])
        .arg("--target")
        .arg(target)
        .arg("--requirement")
        .arg(&requirements)
        .stdin(Stdio::null());
    for variable in CONTRARY_TO_TARGET {
        command.env_remove(variable);
    }
    let output = command.output().map_err(failed("run", python))?;
    if output.status.success() {
        return Ok(());
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    if stderr.contains("No module named pip") {
        return Err(ProvisionError::NoPip {
            python: python.to_owned(),
        });
    }
    let lines: Vec<&str> = stderr.trim().lines().collect();
    Err(ProvisionError::Pip {
        command: format!(
            "{} -m pip install --require-hashes {REQUIREMENT}",
            python.display()
        ),
        reason: lines[lines.len().saturating_sub(6)..].join("\n"),
    })
}
