//! The headers of a template set, and which of them a text includes.

use super::RenderError;
use super::template::numbered;
use crate::Header;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Headers by the name they are included under, each with the names that it includes itself.
pub(super) struct Headers {
    by_name: BTreeMap<String, (Arc<Header>, Vec<String>)>,
}

impl Headers {
    pub(super) fn new<'text>(
        headers: impl IntoIterator<Item = (&'text str, &'text str)>,
    ) -> Result<Self, RenderError> {
        let by_name = headers
            .into_iter()
            .map(|(name, text)| {
                let header = Header {
                    name: name.to_owned(),
                    text: numbered(name, text)?,
                };
                let includes = includes(text).map(str::to_owned).collect();
                Ok((name.to_owned(), (Arc::new(header), includes)))
            })
            .collect::<Result<_, RenderError>>()?;
        Ok(Headers { by_name })
    }

    /// The headers that `text` includes, directly or through others, by name.
    ///
    /// A source holds no others: an edit of a header changes the hash of the sources that include it, and of
    /// no more. A name that no header has is left for the compiler, which points at the `#include`.
    pub(super) fn included_by(&self, text: &str) -> Vec<Arc<Header>> {
        let mut found = BTreeMap::new();
        let mut pending: Vec<&str> = includes(text).collect();
        while let Some(name) = pending.pop() {
            if let Some((header, includes)) = self.by_name.get(name)
                && found.insert(name, header).is_none()
            {
                pending.extend(includes.iter().map(String::as_str));
            }
        }
        found.into_values().cloned().collect()
    }
}

fn includes(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| {
        let rest = line.trim_start().strip_prefix('#')?.trim_start();
        let rest = rest.strip_prefix("include")?.trim_start();
        Some(rest.strip_prefix('"')?.split_once('"')?.0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_gets_the_headers_it_reaches_and_no_others() {
        let text = |includes: &[&str]| {
            let lines = includes.iter().map(|name| format!("#include \"{name}\"\n"));
            format!("#line 1 \"/x\"\n{}", lines.collect::<String>())
        };
        let (a, b, c) = (text(&["b"]), text(&["c", "a"]), text(&[]));
        let headers = Headers::new([
            ("a", a.as_str()),
            ("b", b.as_str()),
            ("c", c.as_str()),
            ("unused", c.as_str()),
        ])
        .unwrap();
        let names = |text: &str| -> Vec<String> {
            let found = headers.included_by(text);
            found.iter().map(|header| header.name.clone()).collect()
        };
        assert_eq!(names("# include \"a\"\n"), ["a", "b", "c"]);
        assert_eq!(names("  #include \"c\"\n#include \"absent\"\n"), ["c"]);
        assert_eq!(names("// #include \"a\"\n"), [""; 0]);
    }
}
