//! What this machine's own tools say about where libraries are.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The folders of every NVRTC that `ldconfig -p` lists.
pub(super) fn loader_cache(ldconfig: &Path) -> Vec<PathBuf> {
    let listing = Command::new(ldconfig)
        .arg("-p")
        .stdin(Stdio::null())
        .output();
    match listing {
        Ok(output) => listed_folders(&String::from_utf8_lossy(&output.stdout)),
        // Machines without the tool have no cache either.
        Err(_) => Vec::new(),
    }
}

fn listed_folders(listing: &str) -> Vec<PathBuf> {
    let mut folders = Vec::new();
    for line in listing.lines() {
        if let Some((name, path)) = line.split_once("=>")
            && name.trim_start().starts_with("libnvrtc.so")
            && let Some(folder) = Path::new(path.trim()).parent()
            && !folders.iter().any(|known| known == folder)
        {
            folders.push(folder.to_owned());
        }
    }
    folders
}

/// The folders in which a Python keeps its packages.
pub(super) fn site_packages(python: &Path) -> Result<Vec<PathBuf>, String> {
    // `site.getsitepackages` is missing in old virtual environments, `sysconfig` is always there.
    const SCRIPT: &str = "import site, sysconfig
folders = [sysconfig.get_path('platlib'), sysconfig.get_path('purelib')]
folders += getattr(site, 'getsitepackages', list)()
folders += [site.getusersitepackages()]
print('\\n'.join(folders))";
    let output = Command::new(python)
        .args(["-c", SCRIPT])
        .stdin(Stdio::null())
        .output()
        .map_err(|error| error.to_string())?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        return Err(stderr.lines().last().unwrap_or("it failed").to_owned());
    }
    Ok(String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter(|line| !line.is_empty())
        .map(PathBuf::from)
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_folder_of_the_loaders_listing_is_taken_once() {
        let listing = "3 libs found in cache\n\
            \tlibnvrtc.so.12 (libc6,x86-64) => /usr/local/cuda-12.9/lib64/libnvrtc.so.12\n\
            \tlibnvrtc.so (libc6,x86-64) => /usr/local/cuda-12.9/lib64/libnvrtc.so\n\
            \tlibnvrtc-builtins.so.12.9 (libc6,x86-64) => /elsewhere/libnvrtc-builtins.so.12.9\n\
            \tlibc.so.6 (libc6,x86-64) => /lib/libc.so.6\n";
        assert_eq!(
            listed_folders(listing),
            [Path::new("/usr/local/cuda-12.9/lib64")]
        );
    }

    #[test]
    fn a_tool_that_is_missing_or_fails_is_told() {
        assert!(loader_cache(Path::new("/nowhere/ldconfig")).is_empty());
        assert!(site_packages(Path::new("/nowhere/python3")).is_err());
        assert!(site_packages(Path::new("/bin/false")).is_err());
    }
}
