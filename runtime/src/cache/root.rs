//! Where the cache is when nobody says.

use super::CacheError;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The root of the cache: `explicit`, or `PAGESMITH_CACHE`, `$XDG_CACHE_HOME/pagesmith`,
/// `~/.cache/pagesmith`, in this order.
///
/// Never a temporary directory: others may write there, and a CUBIN is executable code.
///
/// # Errors
/// When none of them is set; the error names the variables.
pub fn default_root(explicit: Option<&Path>) -> Result<PathBuf, CacheError> {
    resolve_root(explicit, |variable| std::env::var_os(variable))
}

/// [`default_root`] in a given environment.
///
/// ```
/// use pagesmith_runtime::cache::resolve_root;
/// use std::path::Path;
///
/// let root = resolve_root(None, |name| (name == "HOME").then(|| "/home/ada".into()))?;
/// assert_eq!(root, Path::new("/home/ada/.cache/pagesmith"));
/// # Ok::<(), pagesmith_runtime::cache::CacheError>(())
/// ```
///
/// # Errors
/// As [`default_root`].
pub fn resolve_root(
    explicit: Option<&Path>,
    variable: impl Fn(&str) -> Option<OsString>,
) -> Result<PathBuf, CacheError> {
    if let Some(explicit) = explicit {
        return Ok(explicit.to_owned());
    }
    let set = |name| {
        variable(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    if let Some(own) = set("PAGESMITH_CACHE") {
        return Ok(own);
    }
    // The XDG base directory specification: a relative path is invalid and ignored.
    if let Some(xdg) = set("XDG_CACHE_HOME").filter(|path| path.is_absolute()) {
        return Ok(xdg.join("pagesmith"));
    }
    if let Some(home) = set("HOME").filter(|path| path.is_absolute()) {
        return Ok(home.join(".cache/pagesmith"));
    }
    Err(CacheError::NoHome)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root(variables: &[(&str, &str)]) -> Result<PathBuf, CacheError> {
        resolve_root(None, |name| {
            let (_, value) = variables.iter().find(|(known, _)| *known == name)?;
            Some(OsString::from(value))
        })
    }

    #[test]
    fn the_nearest_setting_wins_and_relative_ones_of_the_system_are_ignored() {
        let all = [
            ("PAGESMITH_CACHE", "here"),
            ("XDG_CACHE_HOME", "/xdg"),
            ("HOME", "/home"),
        ];
        assert_eq!(root(&all).expect("set"), Path::new("here"));
        assert_eq!(root(&all[1..]).expect("set"), Path::new("/xdg/pagesmith"));
        assert_eq!(
            root(&all[2..]).expect("set"),
            Path::new("/home/.cache/pagesmith")
        );
        let relative = [("XDG_CACHE_HOME", "xdg"), ("HOME", "/home")];
        assert_eq!(
            root(&relative).expect("set"),
            Path::new("/home/.cache/pagesmith")
        );
        let explicit = resolve_root(Some(Path::new("/x")), |_| Some("/y".into()));
        assert_eq!(explicit.expect("explicit"), Path::new("/x"));
    }

    #[test]
    fn without_a_home_the_error_names_the_variables() {
        for variables in [&[][..], &[("HOME", "")], &[("HOME", "relative")]] {
            let error = root(variables).unwrap_err().to_string();
            for name in ["PAGESMITH_CACHE", "XDG_CACHE_HOME", "HOME", "--cache"] {
                assert!(error.contains(name), "{error}");
            }
        }
    }
}
