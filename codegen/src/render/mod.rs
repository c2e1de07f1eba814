//! Variant to source.
//!
//! A template writes a configuration struct and the entry points, the headers hold the code. Delimiters are
//! `@{ }@`, `@[ ]@` and `@# #@`: tera's own collide with CUDA and inline PTX.

mod filter;
mod headers;
mod template;
mod variables;

use crate::Source;
use crate::source::line_directive;
use headers::Headers;
use pagesmith_spec::{Operation, Variant, abi};
use std::collections::BTreeMap;
use std::sync::OnceLock;
use template::{BLOCK, COMMENT, VARIABLE, numbered};
use tera::{Delimiters, Tera};
use variables::{ECHO_ENTRIES, Variables};

/// A template that does not render.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RenderError {
    /// A text whose lines could not be traced back to it.
    #[error(
        "{name} does not start with `#line 1` and an absolute path; make `#line 1 \"/pagesmith/...\"` \
         its first line"
    )]
    NoLineDirective {
        /// The template or header.
        name: String,
    },
    /// No template of that name.
    #[error("no template {name} (there are: {})", available.join(", "))]
    NoTemplate {
        /// What was asked for.
        name: &'static str,
        /// The templates there are.
        available: Vec<String>,
    },
    /// A template uses variables that nobody gives. In a condition they would silently be false.
    #[error(
        "{template} uses unknown {}; available: {}",
        unknown.join(", "),
        available.join(", ")
    )]
    UnknownVariables {
        /// The template.
        template: &'static str,
        /// What it uses.
        unknown: Vec<String>,
        /// What it is given.
        available: Vec<&'static str>,
    },
    /// tera refused a template, or an expression in it failed.
    #[error("{message}")]
    Tera {
        /// tera's message, with the place in the template.
        message: String,
    },
}

impl From<tera::Error> for RenderError {
    fn from(error: tera::Error) -> Self {
        let mut message = error.to_string();
        let mut cause = std::error::Error::source(&error);
        while let Some(inner) = cause {
            message.push_str(&format!("\n{inner}"));
            cause = inner.source();
        }
        RenderError::Tera { message }
    }
}

/// A set of templates and the headers that what they render to may include.
pub struct Templates {
    tera: Tera,
    /// The variables that each template uses, includes followed.
    used: BTreeMap<String, Vec<String>>,
    headers: Headers,
}

impl std::fmt::Debug for Templates {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Templates")
            .field("templates", &self.used.keys())
            .finish_non_exhaustive()
    }
}

impl Templates {
    /// Parses templates, given as (name, text), over headers, given as (name in `#include`, text). The
    /// generated ABI header is added to them.
    ///
    /// # Errors
    /// When a template has a syntax error, or a text does not start with an absolute `#line`.
    pub fn new(templates: &[(&str, &str)], headers: &[(&str, &str)]) -> Result<Self, RenderError> {
        let abi = abi::header();
        let abi = [(abi::HEADER_NAME, abi.as_str())];
        // Parsed as they are first: a syntax error then has the line it has in the file.
        environment(templates.iter().copied())?;
        let numbered = templates
            .iter()
            .map(|(name, text)| Ok((*name, numbered(name, text)?)))
            .collect::<Result<Vec<_>, RenderError>>()?;
        let tera = environment(numbered)?;
        let mut used = BTreeMap::new();
        for (name, _) in templates {
            let mut variables: Vec<String> = tera
                .get_template_variables(name)?
                .into_iter()
                .map(str::to_owned)
                .collect();
            variables.sort_unstable();
            used.insert((*name).to_owned(), variables);
        }
        Ok(Templates {
            headers: Headers::new(headers.iter().copied().chain(abi))?,
            tera,
            used,
        })
    }

    /// The templates that are part of pagesmith, parsed on the first call.
    ///
    /// # Errors
    /// As [`Templates::new`].
    pub fn embedded() -> Result<&'static Self, RenderError> {
        static EMBEDDED: OnceLock<Result<Templates, RenderError>> = OnceLock::new();
        EMBEDDED
            .get_or_init(|| {
                Templates::new(pagesmith_kernels::TEMPLATES, pagesmith_kernels::HEADERS)
            })
            .as_ref()
            .map_err(Clone::clone)
    }

    /// The source of a variant: the same variant gives the same text.
    ///
    /// # Errors
    /// When its template is missing, uses a variable that there is not, or fails.
    pub fn render(&self, variant: &Variant) -> Result<Source, RenderError> {
        let (template, entries): (_, &[&str]) = match variant.spec().operation {
            Operation::Decode => ("decode.cu.tera", &["pagesmith_decode", "pagesmith_merge"]),
        };
        let source = self.source(template, &Variables::of(variant), entries)?;
        Ok(Source {
            variant: Some(variant.hash()),
            ..source
        })
    }

    /// The source of the echo kernels, which copy a parameter struct field by field to memory: they show
    /// that Rust and CUDA agree on where each field lies.
    ///
    /// # Errors
    /// As [`Templates::render`].
    pub fn render_echo(&self) -> Result<Source, RenderError> {
        self.source("echo.cu.tera", &Variables::of_echo(), &ECHO_ENTRIES)
    }

    fn source(
        &self,
        template: &'static str,
        variables: &Variables,
        entries: &[&str],
    ) -> Result<Source, RenderError> {
        let used = self
            .used
            .get(template)
            .ok_or_else(|| RenderError::NoTemplate {
                name: template,
                available: self.used.keys().cloned().collect(),
            })?;
        let unknown: Vec<String> = used
            .iter()
            .filter(|name| !variables.contains(name))
            .cloned()
            .collect();
        if !unknown.is_empty() {
            return Err(RenderError::UnknownVariables {
                template,
                unknown,
                available: variables.names().collect(),
            });
        }
        let text = self.tera.render(template, &variables.context())?;
        let (name, _) = text
            .lines()
            .next()
            .and_then(line_directive)
            .ok_or_else(|| RenderError::NoLineDirective {
                name: template.to_owned(),
            })?;
        Ok(Source {
            name,
            headers: self.headers.included_by(&text),
            text,
            entries: entries.iter().map(|entry| (*entry).to_owned()).collect(),
            variant: None,
        })
    }
}

/// tera with pagesmith's delimiters and filters.
fn environment<'name, Text: AsRef<str>>(
    templates: impl IntoIterator<Item = (&'name str, Text)>,
) -> Result<Tera, RenderError> {
    let mut tera = Tera::new();
    tera.set_delimiters(Delimiters {
        block_start: BLOCK.0.into(),
        block_end: BLOCK.1.into(),
        variable_start: VARIABLE.0.into(),
        variable_end: VARIABLE.1.into(),
        comment_start: COMMENT.0.into(),
        comment_end: COMMENT.1.into(),
    })?;
    // CUDA is not HTML, whatever a template is called.
    tera.autoescape_on(Vec::<&str>::new());
    tera.register_filter("float", filter::float);
    tera.add_raw_templates(templates)?;
    Ok(tera)
}

/// Renders a variant with the embedded templates.
///
/// ```
/// use pagesmith_codegen::render;
/// use pagesmith_spec::{Arch, ModelShape, Settings, TuningSpace, Variant};
///
/// let shape = ModelShape::by_name("llama-3-8b")?;
/// let spec = Settings::default().kernels(&shape)?.remove(0);
/// let space = TuningSpace::enumerate(&spec, Arch::SM_80);
/// let source = render(&Variant::new(spec, space.legal()[0])?)?;
/// assert!(source.text.contains("pagesmith_decode"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// As [`Templates::new`] and [`Templates::render`].
pub fn render(variant: &Variant) -> Result<Source, RenderError> {
    Templates::embedded()?.render(variant)
}

/// Renders the echo kernels with the embedded templates.
///
/// # Errors
/// As [`Templates::new`] and [`Templates::render_echo`].
pub fn render_echo() -> Result<Source, RenderError> {
    Templates::embedded()?.render_echo()
}

#[cfg(test)]
mod tests;
