//! `autotune doctor`.

use crate::cli::answer::Answer;
use crate::cli::args::DoctorArgs;
use crate::cli::page::Page;
use pagesmith_autotune::doctor::{CudaFound, Diagnosis, Folder, diagnose};
use pagesmith_codegen::Search;
use pagesmith_runtime::cache::default_root;
use pagesmith_runtime::{Cuda, Device, DeviceError};
use serde_json::Value;
use std::io;

pub(crate) fn doctor(args: &DoctorArgs) -> Box<dyn Answer> {
    let cache = default_root(args.cache.path.as_deref()).map_err(|error| error.to_string());
    Box::new(diagnose(&Search::from_env(), cache, cuda()))
}

/// The devices, in order; those that pagesmith does not know by what it says of them.
fn cuda() -> CudaFound {
    let mut found = CudaFound {
        driver: Err(String::from("no device")),
        devices: Vec::new(),
    };
    loop {
        match Cuda::new(found.devices.len()) {
            Ok(cuda) => {
                found.driver = Ok(cuda.driver_version().to_owned());
                found.devices.push(cuda.gpu().name.clone());
            }
            Err(error @ (DeviceError::UnknownGpu { .. } | DeviceError::OtherEdition { .. })) => {
                found.devices.push(error.to_string());
            }
            Err(error) => {
                if found.devices.is_empty() {
                    found.driver = Err(error.to_string());
                }
                return found;
            }
        }
    }
}

impl Answer for Diagnosis {
    fn json(&self) -> Value {
        super::object(self)
    }

    fn is_good(&self) -> bool {
        self.ready
    }

    fn text(&self, page: &mut Page<'_>) -> io::Result<()> {
        page.fields(&[
            ("compiler", self.compiler()),
            ("python", self.python()),
            ("cache", described(&self.cache)),
            ("data", described(&self.data)),
            ("gpu", self.gpu()),
            ("processor", self.processor()),
        ])?;
        page.blank()?;
        page.heading("where a compiler was looked for")?;
        for place in &self.searched {
            let path = match &place.path {
                Some(path) => format!(" {}", path.display()),
                None => String::new(),
            };
            page.line(format_args!("  {}{path}: {}", place.origin, place.outcome))?;
        }
        page.blank()?;
        for problem in &self.problems {
            if problem.blocks {
                page.bad("problem:", &problem.what)?;
            } else {
                page.note("note:", &problem.what)?;
            }
            page.line(format_args!("  to do: {}", problem.fix))?;
        }
        if self.ready {
            page.good("ready:", "`autotune run` works on this machine")
        } else {
            page.bad(
                "not ready:",
                "`autotune run` cannot work before the problems above are solved",
            )
        }
    }
}

trait Words {
    fn compiler(&self) -> String;
    fn python(&self) -> String;
    fn gpu(&self) -> String;
    fn processor(&self) -> String;
}

impl Words for Diagnosis {
    fn compiler(&self) -> String {
        match &self.nvrtc {
            Some(found) => format!(
                "NVRTC {} ({}){}\n{}",
                found.version,
                found.origin,
                if found.works.is_ok() {
                    ""
                } else {
                    ", does not work"
                },
                found.library.display()
            ),
            None => String::from("no NVRTC"),
        }
    }

    fn python(&self) -> String {
        match &self.python {
            Some(python) => format!(
                "{} ({}, {})",
                python.version,
                python.path.display(),
                match &python.pip {
                    Some(version) => format!("pip {version}"),
                    None => String::from("no pip"),
                }
            ),
            None => String::from("no python3 on PATH"),
        }
    }

    fn gpu(&self) -> String {
        match &self.cuda.driver {
            Ok(driver) if self.cuda.devices.is_empty() => format!("driver {driver}, no device"),
            Ok(driver) => {
                let devices: Vec<String> = self
                    .cuda
                    .devices
                    .iter()
                    .enumerate()
                    .map(|(ordinal, name)| format!("cuda:{ordinal} {name}"))
                    .collect();
                format!("{} (driver {driver})", devices.join(", "))
            }
            Err(why) => {
                format!("none ({why})\nkernels are proved by emulation, times are modelled")
            }
        }
    }

    fn processor(&self) -> String {
        let yes = |present: bool| if present { "yes" } else { "no" };
        format!(
            "{} threads, AVX2 {}, FMA {}",
            self.cpu.threads,
            yes(self.cpu.avx2),
            yes(self.cpu.fma)
        )
    }
}

fn described(folder: &Folder) -> String {
    let path = match &folder.path {
        Some(path) => path.display().to_string(),
        None => String::from("nowhere"),
    };
    match (&folder.writable, folder.exists) {
        (Ok(()), true) => format!("{path} (writable)"),
        (Ok(()), false) => format!("{path} (will be created)"),
        (Err(why), _) => format!("{path} (not writable: {why})"),
    }
}
