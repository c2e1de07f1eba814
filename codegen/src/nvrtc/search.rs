//! Finding NVRTC on this machine: cheap places first, one after the other, nothing loaded.

use super::ask::{loader_cache, site_packages};
use super::place::{Miss, Origin, Toolchain, look_at, look_below};
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

/// Where to look for NVRTC: a snapshot of the variables that decide it.
///
/// In order: `PAGESMITH_NVRTC` (a file or a directory; when it is set and wrong, the search ends there),
/// `CUDA_PATH`, `CUDA_HOME`, the loader's directories, Python's site-packages, pagesmith's data
/// directory.
///
/// ```
/// use pagesmith_codegen::Search;
///
/// for place in Search::from_env().report() {
///     println!("{place}");
/// }
/// ```
#[derive(Clone, Debug)]
pub struct Search {
    explicit: Option<PathBuf>,
    cuda_path: Option<PathBuf>,
    cuda_home: Option<PathBuf>,
    library_path: Option<OsString>,
    virtual_env: Option<PathBuf>,
    executable_path: Option<OsString>,
    data_dir: Option<PathBuf>,
}

/// One place that was searched, and what was there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Which of the places.
    pub origin: Origin,
    /// The directory or file, where one is known.
    pub path: Option<PathBuf>,
    /// The toolchain there, or why there is none.
    pub outcome: Result<Toolchain, Miss>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.origin)?;
        if let Some(path) = &self.path {
            write!(f, " {}", path.display())?;
        }
        match &self.outcome {
            Ok(toolchain) => write!(
                f,
                ": NVRTC {} at {}",
                toolchain.version,
                toolchain.library.display()
            ),
            Err(miss) => write!(f, ": {miss}"),
        }
    }
}

/// No usable NVRTC.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SearchError {
    /// `PAGESMITH_NVRTC` names something else.
    #[error(
        "PAGESMITH_NVRTC={}: {miss}; set it to libnvrtc.so.13 or to the directory that holds it and \
         libnvrtc-builtins.so.13.*, or unset it to search elsewhere",
        path.display()
    )]
    Explicit {
        /// Its value.
        path: PathBuf,
        /// What is wrong with it.
        miss: Miss,
    },
    /// None of the places has one.
    #[error(
        "no NVRTC found; searched:\n{}\nInstall it with `python3 -m pip install {}`, or set \
         PAGESMITH_NVRTC to the directory of libnvrtc.so.13",
        listed(searched),
        super::provision::REQUIREMENT
    )]
    NotFound {
        /// Every place, in order.
        searched: Vec<Place>,
    },
}

fn listed(places: &[Place]) -> String {
    let lines: Vec<String> = places.iter().map(|place| format!("  {place}")).collect();
    lines.join("\n")
}

impl Search {
    /// The search that this process's environment asks for.
    pub fn from_env() -> Self {
        Self::from_vars(|name| std::env::var_os(name))
    }

    /// The search that the variables given by `var` ask for. Empty values count as unset.
    ///
    /// ```
    /// use pagesmith_codegen::{Search, SearchError};
    ///
    /// let search = Search::from_vars(|_| None);
    /// assert!(matches!(search.find(), Ok(_) | Err(SearchError::NotFound { .. })));
    /// ```
    pub fn from_vars(var: impl Fn(&str) -> Option<OsString>) -> Self {
        let var = |name: &str| var(name).filter(|value| !value.is_empty());
        let path = |name: &str| var(name).map(PathBuf::from);
        Search {
            explicit: path("PAGESMITH_NVRTC"),
            cuda_path: path("CUDA_PATH"),
            cuda_home: path("CUDA_HOME"),
            library_path: var("LD_LIBRARY_PATH"),
            virtual_env: path("VIRTUAL_ENV"),
            executable_path: var("PATH"),
            data_dir: path("PAGESMITH_DATA")
                .or_else(|| path("XDG_DATA_HOME").map(|home| home.join("pagesmith")))
                .or_else(|| path("HOME").map(|home| home.join(".local/share/pagesmith"))),
        }
    }

    /// pagesmith's data directory: `$PAGESMITH_DATA`, else `$XDG_DATA_HOME/pagesmith`, else
    /// `~/.local/share/pagesmith`.
    pub fn data_dir(&self) -> Option<&Path> {
        self.data_dir.as_deref()
    }

    /// The first toolchain in the order of the search. Later places are not looked at.
    ///
    /// # Errors
    /// When `PAGESMITH_NVRTC` is set and wrong, or no place has a toolchain.
    pub fn find(&self) -> Result<Toolchain, SearchError> {
        let mut searched = Vec::new();
        for origin in ORDER {
            for place in self.look(origin) {
                match (&place.outcome, origin) {
                    (Ok(toolchain), _) => return Ok(toolchain.clone()),
                    (Err(Miss::NotSet), _) => {}
                    (Err(miss), Origin::Explicit) => {
                        return Err(SearchError::Explicit {
                            path: place.path.unwrap_or_default(),
                            miss: miss.clone(),
                        });
                    }
                    (Err(_), _) => {}
                }
                searched.push(place);
            }
        }
        Err(SearchError::NotFound { searched })
    }

    /// Every place and what is there, in the order of the search.
    pub fn report(&self) -> Vec<Place> {
        ORDER
            .into_iter()
            .flat_map(|origin| self.look(origin))
            .collect()
    }

    fn look(&self, origin: Origin) -> Vec<Place> {
        let below = |root: &Option<PathBuf>| {
            vec![Place {
                origin,
                path: root.clone(),
                outcome: match root {
                    None => Err(Miss::NotSet),
                    Some(root) if root.is_file() => look_at(root, origin),
                    Some(root) => look_below(root, origin),
                },
            }]
        };
        match origin {
            Origin::Explicit => below(&self.explicit),
            Origin::CudaPath => below(&self.cuda_path),
            Origin::CudaHome => below(&self.cuda_home),
            Origin::Loader => self.look_at_loader(),
            Origin::SitePackages => self.look_at_python(),
            Origin::DataDir => below(
                &self
                    .data_dir
                    .as_deref()
                    .map(super::provision::install_folder),
            ),
        }
    }

    /// Searches without loading: a library opened here would stay in the process, and the loader would
    /// then hand it out in place of the one that is chosen in the end.
    fn look_at_loader(&self) -> Vec<Place> {
        let origin = Origin::Loader;
        // Not on every user's PATH.
        let ldconfig = self
            .executable("ldconfig")
            .unwrap_or_else(|| PathBuf::from("/sbin/ldconfig"));
        let cached = loader_cache(&ldconfig);
        let mut places: Vec<Place> = self
            .library_path
            .iter()
            .flat_map(std::env::split_paths)
            .filter(|folder| !folder.as_os_str().is_empty())
            .chain(cached)
            .map(|folder| Place {
                outcome: look_below(&folder, origin),
                path: Some(folder),
                origin,
            })
            .filter(|place| !matches!(place.outcome, Err(Miss::NoLibrary | Miss::Absent)))
            .collect();
        if places.is_empty() {
            places.push(Place {
                origin,
                path: None,
                outcome: Err(Miss::NoLibrary),
            });
        }
        places
    }

    fn look_at_python(&self) -> Vec<Place> {
        let origin = Origin::SitePackages;
        let virtual_env = self
            .virtual_env
            .as_ref()
            .map(|root| root.join("bin/python3"));
        let pythons: Vec<PathBuf> = virtual_env
            .into_iter()
            .filter(|python| python.exists())
            .chain(self.executable("python3"))
            .collect();
        if pythons.is_empty() {
            return vec![Place {
                origin,
                path: None,
                outcome: Err(Miss::NoPython),
            }];
        }
        let mut places: Vec<Place> = Vec::new();
        for python in pythons {
            match site_packages(&python) {
                Ok(folders) => {
                    for folder in folders {
                        if places
                            .iter()
                            .any(|place| place.path.as_ref() == Some(&folder))
                        {
                            continue;
                        }
                        places.push(Place {
                            origin,
                            outcome: look_below(&folder, origin),
                            path: Some(folder),
                        });
                    }
                }
                Err(reason) => places.push(Place {
                    origin,
                    path: Some(python.clone()),
                    outcome: Err(Miss::Python { python, reason }),
                }),
            }
        }
        places
    }

    /// The first file of that name on the search's `PATH`.
    pub(super) fn executable(&self, name: &str) -> Option<PathBuf> {
        std::env::split_paths(self.executable_path.as_ref()?)
            .map(|folder| folder.join(name))
            .find(|file| file.is_file())
    }
}

const ORDER: [Origin; 6] = [
    Origin::Explicit,
    Origin::CudaPath,
    Origin::CudaHome,
    Origin::Loader,
    Origin::SitePackages,
    Origin::DataDir,
];

#[cfg(test)]
mod tests {
    use super::*;

    fn fake(folder: &Path) {
        std::fs::create_dir_all(folder).unwrap();
        for file in ["libnvrtc.so.13", "libnvrtc-builtins.so.13.0"] {
            std::fs::write(folder.join(file), "").unwrap();
        }
    }

    fn search(vars: &[(&str, &Path)]) -> Search {
        Search::from_vars(|name| {
            vars.iter()
                .find(|(key, _)| *key == name)
                .map(|(_, value)| value.as_os_str().to_owned())
        })
    }

    #[test]
    fn places_are_tried_in_the_documented_order() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        for name in ["explicit", "path/lib64", "home/lib64", "loader"] {
            fake(&at(name));
        }
        fake(&super::super::provision::install_folder(&at("data")).join("nvidia/cu13/lib"));
        let (explicit, path, home, loader, data) = (
            at("explicit"),
            at("path"),
            at("home"),
            at("loader"),
            at("data"),
        );
        let mut vars = vec![
            ("PAGESMITH_NVRTC", explicit.as_path()),
            ("CUDA_PATH", path.as_path()),
            ("CUDA_HOME", home.as_path()),
            ("LD_LIBRARY_PATH", loader.as_path()),
            ("PAGESMITH_DATA", data.as_path()),
        ];
        for expected in [
            Origin::Explicit,
            Origin::CudaPath,
            Origin::CudaHome,
            Origin::Loader,
        ] {
            assert_eq!(search(&vars).find().unwrap().origin, expected);
            vars.remove(0);
        }
        // An NVRTC of the machine itself may come before the data directory; without one it is found.
        let report = search(&vars).report();
        let own = report.last().unwrap();
        assert_eq!(own.origin, Origin::DataDir);
        assert!(own.outcome.is_ok(), "{own}");
    }

    #[test]
    fn an_explicit_file_is_taken_as_it_is() {
        let root = tempfile::tempdir().unwrap();
        fake(root.path());
        let file = root.path().join("libnvrtc.so.13");
        let found = search(&[("PAGESMITH_NVRTC", &file)]).find().unwrap();
        assert_eq!(found.library, file);
    }

    #[test]
    fn a_wrong_explicit_path_ends_the_search_although_another_place_has_one() {
        let root = tempfile::tempdir().unwrap();
        fake(&root.path().join("cuda/lib64"));
        let wrong = root.path().join("nowhere");
        let error = search(&[
            ("PAGESMITH_NVRTC", &wrong),
            ("CUDA_PATH", &root.path().join("cuda")),
        ])
        .find()
        .unwrap_err();
        assert!(matches!(error, SearchError::Explicit { .. }), "{error}");
        assert!(error.to_string().contains(wrong.to_str().unwrap()));
    }

    #[test]
    fn an_empty_variable_counts_as_unset() {
        let report = search(&[("PAGESMITH_NVRTC", Path::new(""))]).report();
        assert_eq!(report[0].outcome, Err(Miss::NotSet));
    }

    #[test]
    fn a_failed_search_lists_every_place_and_the_fix() {
        let error = SearchError::NotFound {
            searched: search(&[("CUDA_PATH", Path::new("/nowhere"))]).report(),
        };
        let text = error.to_string();
        for expected in [
            "CUDA_PATH /nowhere: does not exist",
            "pip install nvidia-cuda-nvrtc==",
        ] {
            assert!(text.contains(expected), "{text}");
        }
    }
}
