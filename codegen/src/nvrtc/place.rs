//! Which files make up an NVRTC, and whether a directory holds them.

use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};

/// Where a search looked, in the order of the search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Origin {
    /// The variable `PAGESMITH_NVRTC`.
    Explicit,
    /// The variable `CUDA_PATH`.
    CudaPath,
    /// The variable `CUDA_HOME`.
    CudaHome,
    /// The directories that the loader searches: `LD_LIBRARY_PATH` and the loader's cache.
    Loader,
    /// Python's site-packages, where the wheels of NVRTC install it.
    SitePackages,
    /// pagesmith's own data directory, where [`provision`](crate::provision) installs it.
    DataDir,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Origin::Explicit => "PAGESMITH_NVRTC",
            Origin::CudaPath => "CUDA_PATH",
            Origin::CudaHome => "CUDA_HOME",
            Origin::Loader => "loader",
            Origin::SitePackages => "Python site-packages",
            Origin::DataDir => "data directory",
        })
    }
}

/// The CUDA release of an NVRTC, such as 13.0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Version {
    /// 13 of 13.0.
    pub major: u32,
    /// 0 of 13.0.
    pub minor: u32,
}

impl Version {
    /// The oldest release whose PTX and options pagesmith is tested with.
    pub const OLDEST: Version = Version {
        major: 12,
        minor: 0,
    };
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// The two files of an NVRTC, found but not loaded yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Toolchain {
    /// The compiler, `libnvrtc.so.13`.
    pub library: PathBuf,
    /// What it loads by itself, `libnvrtc-builtins.so.13.0`.
    pub builtins: PathBuf,
    /// As the name of `builtins` says.
    pub version: Version,
    /// How it was found.
    pub origin: Origin,
}

impl fmt::Display for Toolchain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "NVRTC {} at {} ({})",
            self.version,
            self.library.display(),
            self.origin
        )
    }
}

/// Why a place gave no toolchain.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Miss {
    /// The variable is not set.
    #[error("not set")]
    NotSet,
    /// There is no Python to ask.
    #[error("no python3 on PATH")]
    NoPython,
    /// The path does not exist.
    #[error("does not exist")]
    Absent,
    /// There is no `libnvrtc.so.*` there.
    #[error("no libnvrtc.so.* there")]
    NoLibrary,
    /// The compiler is there without the file it needs to compile anything.
    #[error("{library} is there without libnvrtc-builtins.so.{major}.*")]
    NoBuiltins {
        /// The compiler's file name.
        library: String,
        /// Its major version.
        major: u32,
    },
    /// Only releases that are too old.
    #[error("NVRTC {found} is older than {}", Version::OLDEST)]
    TooOld {
        /// The newest release there.
        found: Version,
    },
    /// Python could not be asked.
    #[error("could not ask {python} for its site-packages: {reason}")]
    Python {
        /// The interpreter.
        python: PathBuf,
        /// What went wrong.
        reason: String,
    },
}

/// Folders below a CUDA toolkit, a Python site or an explicit directory that hold libraries.
const SUBFOLDERS: [&str; 7] = [
    "",
    "lib64",
    "lib",
    "targets/x86_64-linux/lib",
    "targets/sbsa-linux/lib",
    "nvidia/cu13/lib",
    "nvidia/cuda_nvrtc/lib",
];

/// The toolchain in or below `root`, the newest release of the first folder that has one.
pub(super) fn look_below(root: &Path, origin: Origin) -> Result<Toolchain, Miss> {
    if !root.exists() {
        return Err(Miss::Absent);
    }
    let mut worst = Miss::NoLibrary;
    for folder in SUBFOLDERS {
        match look_in(&root.join(folder), None, origin) {
            Ok(toolchain) => return Ok(toolchain),
            Err(Miss::NoLibrary | Miss::Absent) => {}
            // A half-installed compiler explains more than an empty folder further on.
            Err(miss) => worst = miss,
        }
    }
    Err(worst)
}

/// The toolchain whose compiler is the file `library`.
pub(super) fn look_at(library: &Path, origin: Origin) -> Result<Toolchain, Miss> {
    // A toolkit's `libnvrtc.so` links to the file whose name tells the release.
    let unversioned = release(&file_name(library), "libnvrtc.so.").is_none();
    let target = unversioned.then(|| library.canonicalize().ok()).flatten();
    let library = target.as_deref().unwrap_or(library);
    let name = library.file_name().unwrap_or_default();
    let folder = library.parent().unwrap_or(Path::new(""));
    look_in(folder, Some(name), origin)
}

fn look_in(folder: &Path, only: Option<&OsStr>, origin: Origin) -> Result<Toolchain, Miss> {
    let Ok(entries) = folder.read_dir() else {
        return Err(Miss::Absent);
    };
    let mut libraries = Vec::new();
    let mut builtins = Vec::new();
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some(text) = name.to_str() else { continue };
        if let Some(version) = release(text, "libnvrtc-builtins.so.") {
            builtins.push((version, entry.path()));
        } else if only.is_none_or(|only| only == name)
            && let Some(version) = release(text, "libnvrtc.so.")
        {
            libraries.push((version, entry.path()));
        }
    }
    // `libnvrtc.so.13` and its target `libnvrtc.so.13.0.88` are the same file: the shorter name wins,
    // since that one the loader knows.
    libraries.sort_by_key(|(version, path)| {
        (
            std::cmp::Reverse(version.major),
            path.as_os_str().len(),
            path.clone(),
        )
    });
    let Some((version, library)) = libraries.into_iter().next() else {
        return Err(Miss::NoLibrary);
    };
    let Some((version, builtins)) = builtins
        .into_iter()
        .filter(|(candidate, _)| candidate.major == version.major)
        .max()
    else {
        return Err(Miss::NoBuiltins {
            library: file_name(&library),
            major: version.major,
        });
    };
    if version < Version::OLDEST {
        return Err(Miss::TooOld { found: version });
    }
    Ok(Toolchain {
        library: absolute(library),
        builtins: absolute(builtins),
        version,
        origin,
    })
}

fn file_name(path: &Path) -> String {
    path.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

/// The release in the name of a shared library: `13` or `13.0.88` after `prefix`, and nothing else.
fn release(name: &str, prefix: &str) -> Option<Version> {
    let mut numbers = name.strip_prefix(prefix)?.split('.').map(str::parse::<u32>);
    let major = numbers.next()?.ok()?;
    let minor = numbers.next().transpose().ok()?.unwrap_or(0);
    numbers
        .all(|number| number.is_ok())
        .then_some(Version { major, minor })
}

/// A path that stays right when the process changes its working directory.
fn absolute(path: PathBuf) -> PathBuf {
    std::path::absolute(&path).unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(files: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for file in files {
            let path = folder.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        folder
    }

    #[test]
    fn a_wheel_a_toolkit_and_a_bare_folder_are_recognised() {
        for (prefix, release) in [
            ("nvidia/cu13/lib/", "13.0"),
            ("nvidia/cuda_nvrtc/lib/", "12.9"),
            ("lib64/", "12.4"),
            ("", "13.1"),
        ] {
            let major = release.split('.').next().unwrap();
            let folder = folder(&[
                &format!("{prefix}libnvrtc.so.{major}"),
                &format!("{prefix}libnvrtc-builtins.so.{release}"),
            ]);
            let found = look_below(folder.path(), Origin::Explicit).unwrap();
            assert_eq!(found.version.to_string(), release);
            assert!(found.library.is_absolute());
        }
    }

    #[test]
    fn the_newest_release_wins_and_the_wheels_alternative_build_is_not_taken() {
        let folder = folder(&[
            "libnvrtc.so.12",
            "libnvrtc-builtins.so.12.9",
            "libnvrtc.alt.so.13",
            "libnvrtc-builtins.alt.so.13.0",
            "libnvrtc.so.13",
            "libnvrtc.so.13.0.88",
            "libnvrtc-builtins.so.13.0",
            "libnvrtc-builtins.so.13.0.88",
        ]);
        let found = look_below(folder.path(), Origin::Loader).unwrap();
        assert!(found.library.ends_with("libnvrtc.so.13"), "{found}");
        assert_eq!(
            found.version,
            Version {
                major: 13,
                minor: 0
            }
        );
    }

    #[test]
    fn a_compiler_without_its_builtins_is_named() {
        let folder = folder(&["lib64/libnvrtc.so.13", "lib64/libnvrtc-builtins.so.12.9"]);
        assert_eq!(
            look_below(folder.path(), Origin::CudaPath),
            Err(Miss::NoBuiltins {
                library: "libnvrtc.so.13".into(),
                major: 13
            })
        );
    }

    #[test]
    fn a_release_before_12_is_refused() {
        let folder = folder(&["libnvrtc.so.11.2", "libnvrtc-builtins.so.11.8"]);
        assert!(matches!(
            look_below(folder.path(), Origin::CudaPath),
            Err(Miss::TooOld { .. })
        ));
    }

    #[test]
    fn an_absent_and_an_empty_folder_differ() {
        let folder = folder(&[]);
        let absent = folder.path().join("absent");
        assert_eq!(look_below(&absent, Origin::CudaPath), Err(Miss::Absent));
        assert_eq!(
            look_below(folder.path(), Origin::CudaPath),
            Err(Miss::NoLibrary)
        );
    }
}
