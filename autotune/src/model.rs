//! Reading a model's shape from wherever a user says it is.

use crate::TuneError;
use pagesmith_spec::ModelShape;
use pagesmith_spec::model::ModelSource;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Longest config.json that is read: the parser refuses anything longer than a model's anyway.
const CONFIG_BYTES: u64 = 16 << 20;

/// The shape of the model that `text` names: a built-in name, the path of a config.json or of the
/// directory that holds it, or a GGUF file, of which only the header is read.
///
/// # Errors
/// When the model is unknown, its file cannot be read, or it has no possible shape.
pub fn load_model(text: &str) -> Result<ModelShape, TuneError> {
    match ModelSource::parse(text) {
        ModelSource::ConfigJson(path) => {
            let mut config = Vec::new();
            open(&path)?
                .take(CONFIG_BYTES)
                .read_to_end(&mut config)
                .map_err(unreadable(&path))?;
            Ok(ModelShape::from_config_json(&config)?)
        }
        ModelSource::Gguf(path) => Ok(ModelShape::from_gguf_reader(open(&path)?)?),
        ModelSource::Name(name) => Ok(ModelShape::by_name(&name)?),
        other => Err(TuneError::ModelSource(format!("{other:?}"))),
    }
}

fn open(path: &Path) -> Result<File, TuneError> {
    File::open(path).map_err(unreadable(path))
}

fn unreadable(path: &Path) -> impl FnOnce(std::io::Error) -> TuneError {
    let path = path.to_owned();
    move |source| TuneError::ModelFile { path, source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_file_is_named() {
        let error = load_model("/nowhere/config.json").unwrap_err();
        assert!(error.is_input());
        assert!(
            error.to_string().contains("/nowhere/config.json"),
            "{error}"
        );
    }

    #[test]
    fn a_file_that_is_no_gguf_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model.gguf");
        std::fs::write(&path, b"not a model").unwrap();
        let error = load_model(path.to_str().unwrap()).unwrap_err();
        assert!(error.is_input(), "{error}");
    }
}
