//! The text of a template or header, made to say which line is which.

use super::RenderError;
use crate::source::line_directive;

/// tera's delimiters. The standard ones collide with inline PTX (`{%0}`), with `{#pragma` and with `{{0}}`.
pub(super) const BLOCK: (&str, &str) = ("@[", "]@");
pub(super) const VARIABLE: (&str, &str) = ("@{", "}@");
pub(super) const COMMENT: (&str, &str) = ("@#", "#@");

/// `text` with `#line` directives that give each rendered line the number it has in its file.
///
/// The directive of the first line counts itself, and a line that holds only a block tag is followed by a
/// directive of its own, since blocks drop and repeat the lines between their tags.
pub(super) fn numbered(name: &str, text: &str) -> Result<String, RenderError> {
    let mut lines = text.lines();
    let (file, _) = lines
        .next()
        .and_then(line_directive)
        .filter(|(file, _)| file.starts_with('/'))
        .ok_or_else(|| RenderError::NoLineDirective {
            name: name.to_owned(),
        })?;
    let mut numbered = format!("#line 2 \"{file}\"\n");
    // Counted from 1, and the first line is behind us.
    for (number, line) in (2..).zip(lines) {
        numbered.push_str(line);
        numbered.push('\n');
        if is_block_tag(line) {
            numbered.push_str(&format!("#line {} \"{file}\"\n", number + 1));
        }
    }
    Ok(numbered)
}

/// A tag that trims the newline after it cannot have a directive there.
fn is_block_tag(line: &str) -> bool {
    let line = line.trim();
    line.starts_with(BLOCK.0) && line.ends_with(BLOCK.1) && !line.ends_with("-]@")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_keeps_the_number_it_has_in_its_file() {
        let text = "#line 1 \"/pagesmith/t\"\na\n@[ if x ]@\nb\n@[ endif ]@\nc\n";
        assert_eq!(
            numbered("t", text).unwrap(),
            "#line 2 \"/pagesmith/t\"\na\n@[ if x ]@\n#line 4 \"/pagesmith/t\"\nb\n@[ endif ]@\n\
             #line 6 \"/pagesmith/t\"\nc\n"
        );
    }

    #[test]
    fn a_tag_that_trims_its_newline_and_an_inline_tag_get_no_directive() {
        for line in ["@[ if x -]@", "int a = @[ if x ]@1@[ else ]@2@[ endif ]@;"] {
            let text = format!("#line 1 \"/t\"\n{line}\n");
            assert_eq!(
                numbered("t", &text).unwrap(),
                format!("#line 2 \"/t\"\n{line}\n")
            );
        }
    }

    #[test]
    fn a_text_that_does_not_name_itself_absolutely_is_refused() {
        for text in [
            "",
            "int a;\n",
            "#line 1 \"t.cuh\"\n",
            "\n#line 1 \"/t.cuh\"\n",
        ] {
            assert!(matches!(
                numbered("t", text),
                Err(RenderError::NoLineDirective { .. })
            ));
        }
    }
}
