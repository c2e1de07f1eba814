//! Installing NVRTC, with stand-ins for `python3` and `ldconfig`, so that nothing is downloaded and this
//! machine's own NVRTC is not found.

#![allow(clippy::unwrap_used, reason = "a test stops where its setting fails")]
#![cfg(target_os = "linux")]

use pagesmith_codegen::{
    Origin, Progress, ProvisionError, Provisioning, REQUIREMENT, Search, Toolchain, provision,
};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// A pip that "installs" the two files and logs how it was called.
const PIP: &str = r#"
echo "$@" >> "$ROOT/calls"
while [ $# -gt 0 ]; do
  case "$1" in
    --target) target="$2" ;;
    --requirement) cat "$2" >> "$ROOT/calls" ;;
  esac
  shift
done
sleep 0.2
mkdir -p "$target/nvidia/cu13/lib"
: > "$target/nvidia/cu13/lib/libnvrtc.so.13"
: > "$target/nvidia/cu13/lib/libnvrtc-builtins.so.13.0"
"#;

/// A machine whose only Python runs `pip` when it is asked to install.
struct Machine {
    root: tempfile::TempDir,
}

impl Machine {
    fn with_pip(pip: &str) -> Self {
        let machine = Self::without_python();
        // `-c` asks for site-packages: there are none.
        let python = format!(
            "#!/bin/sh\nROOT={}\n[ \"$1\" = -c ] && exit 0\n{pip}\n",
            machine.root.path().display()
        );
        machine.script("python3", &python);
        machine
    }

    fn without_python() -> Self {
        let machine = Machine {
            root: tempfile::tempdir().unwrap(),
        };
        fs::create_dir(machine.root.path().join("bin")).unwrap();
        machine.script("ldconfig", "#!/bin/sh\n");
        machine
    }

    fn script(&self, name: &str, text: &str) {
        let path = self.root.path().join("bin").join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn data(&self) -> PathBuf {
        self.root.path().join("data")
    }

    fn search(&self) -> Search {
        Search::from_vars(|name| match name {
            "PATH" => Some(self.root.path().join("bin").into()),
            "PAGESMITH_DATA" => Some(self.data().into()),
            _ => None,
        })
    }

    fn provision(&self) -> (Result<Toolchain, ProvisionError>, Vec<Progress>) {
        let mut seen = Vec::new();
        let result = provision(&self.search(), Provisioning::Allowed, &mut |progress| {
            seen.push(progress);
        });
        (result, seen)
    }

    fn calls(&self) -> String {
        fs::read_to_string(self.root.path().join("calls")).unwrap_or_default()
    }

    /// What lies in the toolchain folder, the lock excepted.
    fn installed(&self) -> Vec<String> {
        let folder = self.data().join("toolchain");
        let entries = folder.read_dir().into_iter().flatten().flatten();
        entries
            .map(|entry| entry.file_name().into_string().unwrap())
            .filter(|name| name != ".lock")
            .collect()
    }
}

#[test]
fn the_wheel_is_installed_once_with_its_hash_and_found_afterwards() {
    let machine = Machine::with_pip(PIP);
    let (installed, seen) = machine.provision();
    let installed = installed.unwrap();
    assert_eq!(installed.origin, Origin::DataDir);
    assert!(matches!(
        seen[..],
        [Progress::Installing { .. }, Progress::Installed { .. }]
    ));
    let calls = machine.calls();
    for expected in [
        "-m pip install --require-hashes --no-deps",
        &format!("{REQUIREMENT} --hash=sha256:"),
    ] {
        assert!(calls.contains(expected), "{calls}");
    }
    assert_eq!(machine.installed(), [REQUIREMENT.replace("==", "-")]);

    let (again, seen) = machine.provision();
    assert_eq!(again.unwrap(), installed);
    assert_eq!(seen, []);
    assert_eq!(machine.calls(), calls);
}

#[test]
fn offline_installs_nothing_and_says_what_was_searched() {
    let machine = Machine::with_pip(PIP);
    let error = provision(&machine.search(), Provisioning::Offline, &mut |_| {}).unwrap_err();
    assert!(matches!(error, ProvisionError::Offline(_)));
    assert!(error.to_string().contains("data directory"), "{error}");
    assert_eq!(machine.calls(), "");
    assert!(!machine.data().exists());
}

#[test]
fn a_failing_pip_is_quoted_and_leaves_nothing_behind() {
    let machine = Machine::with_pip(
        "mkdir -p \"$ROOT/data/toolchain\"; echo 'ERROR: THESE PACKAGES DO NOT MATCH THE HASHES' >&2; exit 1",
    );
    let error = machine.provision().0.unwrap_err();
    assert!(matches!(error, ProvisionError::Pip { .. }));
    assert!(
        error.to_string().contains("DO NOT MATCH THE HASHES"),
        "{error}"
    );
    assert_eq!(machine.installed(), [""; 0]);
}

#[test]
fn a_python_without_pip_and_a_machine_without_python_are_told_apart() {
    let without_pip = Machine::with_pip("echo \"$0: No module named pip\" >&2; exit 1");
    let error = without_pip.provision().0.unwrap_err();
    assert!(matches!(error, ProvisionError::NoPip { .. }), "{error}");
    assert_eq!(without_pip.installed(), [""; 0]);
    let error = Machine::without_python().provision().0.unwrap_err();
    assert!(matches!(error, ProvisionError::NoPython), "{error}");
}

#[test]
fn a_wheel_without_an_nvrtc_is_not_kept() {
    let machine = Machine::with_pip("exit 0");
    let error = machine.provision().0.unwrap_err();
    assert!(
        matches!(error, ProvisionError::Incomplete { .. }),
        "{error}"
    );
    assert_eq!(machine.installed(), [""; 0]);
}

#[test]
fn two_at_once_install_once() {
    let machine = Machine::with_pip(PIP);
    let results = std::thread::scope(|scope| {
        let threads = [0, 1].map(|_| scope.spawn(|| machine.provision().0.unwrap()));
        threads.map(|thread| thread.join().unwrap())
    });
    assert_eq!(results[0], results[1]);
    assert_eq!(machine.calls().matches("pip install").count(), 1);
}

#[test]
fn what_a_killed_process_left_is_removed_and_a_broken_installation_replaced() {
    let machine = Machine::with_pip(PIP);
    let toolchain = machine.data().join("toolchain");
    let left = [".installing-killed", &REQUIREMENT.replace("==", "-")];
    for name in left {
        fs::create_dir_all(toolchain.join(name)).unwrap();
        fs::write(toolchain.join(name).join("half"), "").unwrap();
    }
    let installed = machine.provision().0.unwrap();
    assert!(installed.library.exists());
    assert_eq!(machine.installed(), [REQUIREMENT.replace("==", "-")]);
    assert!(!toolchain.join(left[1]).join("half").exists());
}

#[test]
fn a_data_directory_that_cannot_be_written_is_named() {
    let machine = Machine::with_pip(PIP);
    fs::write(machine.data(), "a file").unwrap();
    let error = machine.provision().0.unwrap_err();
    assert!(matches!(error, ProvisionError::Io { .. }));
    let text = error.to_string();
    assert!(
        text.contains(&format!("{}", machine.data().display())) && text.contains("PAGESMITH_DATA"),
        "{text}"
    );
}

#[test]
fn a_wrong_explicit_path_is_not_cured_by_installing() {
    let machine = Machine::with_pip(PIP);
    let search = Search::from_vars(|name| match name {
        "PAGESMITH_NVRTC" => Some(Path::new("/nowhere").into()),
        "PATH" => Some(machine.root.path().join("bin").into()),
        "PAGESMITH_DATA" => Some(machine.data().into()),
        _ => None,
    });
    let error = provision(&search, Provisioning::Allowed, &mut |_| {}).unwrap_err();
    assert!(matches!(error, ProvisionError::Search(_)), "{error}");
    assert_eq!(machine.calls(), "");
}
