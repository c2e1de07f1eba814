//! What a user may write where a model is asked for.

use std::path::{Path, PathBuf};

/// Where a model's shape is to be found, as written by a user. Reading is the caller's.
///
/// ```
/// use pagesmith_spec::model::ModelSource;
///
/// let source = ModelSource::parse("models/SmolLM2-135M-Instruct.Q4_1.gguf");
/// assert!(matches!(source, ModelSource::Gguf(_)));
/// assert_eq!(ModelSource::parse("llama-3-8b"), ModelSource::Name("llama-3-8b".into()));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ModelSource {
    /// A built-in name, for [`super::ModelShape::by_name`].
    Name(String),
    /// A Hugging Face config.json, for [`super::ModelShape::from_config_json`].
    ConfigJson(PathBuf),
    /// A GGUF file, for [`super::ModelShape::from_gguf_reader`].
    Gguf(PathBuf),
}

impl ModelSource {
    /// Classifies by spelling alone: `.gguf` and `.json` files by their extension, another path
    /// as a model's directory with its config.json, and the rest as a name.
    pub fn parse(text: &str) -> Self {
        let path = Path::new(text);
        let has_extension = |wanted: &str| {
            path.extension()
                .is_some_and(|extension| extension.eq_ignore_ascii_case(wanted))
        };
        if has_extension("gguf") {
            ModelSource::Gguf(path.to_owned())
        } else if has_extension("json") {
            ModelSource::ConfigJson(path.to_owned())
        } else if text.contains(std::path::is_separator) || matches!(text, "." | "..") {
            ModelSource::ConfigJson(path.join("config.json"))
        } else {
            ModelSource::Name(text.to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spelling_decides_what_a_source_is() {
        for (text, expected) in [
            ("llama-3-8b", ModelSource::Name("llama-3-8b".into())),
            ("", ModelSource::Name(String::new())),
            (
                "a/config.json",
                ModelSource::ConfigJson("a/config.json".into()),
            ),
            ("CONFIG.JSON", ModelSource::ConfigJson("CONFIG.JSON".into())),
            ("x.Q4_1.gguf", ModelSource::Gguf("x.Q4_1.gguf".into())),
            (
                "./llama",
                ModelSource::ConfigJson("./llama/config.json".into()),
            ),
            (".", ModelSource::ConfigJson("./config.json".into())),
            // A name with a dot is no file.
            ("llama-3.1-8b", ModelSource::Name("llama-3.1-8b".into())),
        ] {
            assert_eq!(ModelSource::parse(text), expected, "{text}");
        }
    }
}
