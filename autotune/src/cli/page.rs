//! What people read: text with restrained colour on a terminal, the same text without it elsewhere.

use anstyle::{AnsiColor, Style};
use comfy_table::{Attribute, Cell, CellAlignment, ContentArrangement, Table, presets};
use std::fmt::Display;
use std::io::{self, Write};

/// How a page looks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Look {
    /// Colours and bold.
    pub(crate) styled: bool,
    /// Columns of the terminal; elsewhere a row of a table is one line, however long.
    pub(crate) width: Option<u16>,
}

impl Look {
    /// The look that suits standard output.
    pub(crate) fn of_stdout() -> Self {
        use std::io::IsTerminal;
        let stdout = io::stdout();
        Look {
            styled: anstream::AutoStream::choice(&stdout) != anstream::ColorChoice::Never,
            width: stdout.is_terminal().then(|| Table::new().width()).flatten(),
        }
    }
}

/// A writer of text in one look.
pub(crate) struct Page<'w> {
    out: &'w mut dyn Write,
    look: Look,
}

impl<'w> Page<'w> {
    pub(crate) fn new(out: &'w mut dyn Write, look: Look) -> Self {
        Page { out, look }
    }

    /// One line of text.
    pub(crate) fn line(&mut self, text: impl Display) -> io::Result<()> {
        writeln!(self.out, "{text}")
    }

    pub(crate) fn blank(&mut self) -> io::Result<()> {
        writeln!(self.out)
    }

    /// Text as it is, such as a source.
    pub(crate) fn raw(&mut self, text: &str) -> io::Result<()> {
        self.out.write_all(text.as_bytes())
    }

    /// A line that names what follows.
    pub(crate) fn heading(&mut self, text: impl Display) -> io::Result<()> {
        let bold = self.style(Style::new().bold());
        writeln!(self.out, "{bold}{text}{bold:#}")
    }

    /// A line about something good, with what it is about in front.
    pub(crate) fn good(&mut self, label: &str, text: impl Display) -> io::Result<()> {
        self.labelled(label, AnsiColor::Green, text)
    }

    /// A line about something that is wrong.
    pub(crate) fn bad(&mut self, label: &str, text: impl Display) -> io::Result<()> {
        self.labelled(label, AnsiColor::Red, text)
    }

    /// A line about something to know.
    pub(crate) fn note(&mut self, label: &str, text: impl Display) -> io::Result<()> {
        self.labelled(label, AnsiColor::Yellow, text)
    }

    fn labelled(&mut self, label: &str, colour: AnsiColor, text: impl Display) -> io::Result<()> {
        let style = self.style(colour.on_default().bold());
        writeln!(self.out, "{style}{label}{style:#} {text}")
    }

    /// `name  value` with the values in one column.
    pub(crate) fn fields(&mut self, fields: &[(&str, String)]) -> io::Result<()> {
        let width = fields.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        let dim = self.style(Style::new().dimmed());
        for (name, value) in fields {
            let mut lines = value.lines();
            let first = lines.next().unwrap_or_default();
            writeln!(self.out, "  {dim}{name:width$}{dim:#}  {first}")?;
            for line in lines {
                writeln!(self.out, "  {:width$}  {line}", "")?;
            }
        }
        Ok(())
    }

    /// A table under a bold header. `columns` says what a column is called and how it is aligned.
    pub(crate) fn table(&mut self, columns: &[Column], rows: Vec<Vec<String>>) -> io::Result<()> {
        let mut table = Table::new();
        table.load_style(presets::NOTHING);
        match self.look.width {
            Some(width) => table
                .set_content_arrangement(ContentArrangement::Dynamic)
                .set_width(width),
            None => table.set_content_arrangement(ContentArrangement::Disabled),
        };
        if self.look.styled {
            table.enforce_styling();
        } else {
            table.force_no_tty();
        }
        table.set_header(columns.iter().map(|column| {
            Cell::new(column.name)
                .set_alignment(column.alignment())
                .add_attribute(Attribute::Bold)
        }));
        for row in rows {
            table.add_row(
                row.into_iter()
                    .zip(columns)
                    .map(|(text, column)| Cell::new(text).set_alignment(column.alignment())),
            );
        }
        for (index, column) in columns.iter().enumerate() {
            if let Some(settings) = table.column_mut(index) {
                settings.set_padding((if index == 0 { 0 } else { 1 }, 1));
                if let Some(delimiter) = column.breaks_after {
                    settings.set_delimiter(delimiter);
                }
            }
        }
        for line in table.lines() {
            writeln!(self.out, "{}", line.trim_end())?;
        }
        Ok(())
    }

    fn style(&self, style: Style) -> Style {
        if self.look.styled {
            style
        } else {
            Style::new()
        }
    }
}

/// A column of a table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    name: &'static str,
    number: bool,
    breaks_after: Option<char>,
}

impl Column {
    pub(crate) const fn text(name: &'static str) -> Self {
        Column {
            name,
            number: false,
            breaks_after: None,
        }
    }

    /// Right-aligned.
    pub(crate) const fn number(name: &'static str) -> Self {
        Column {
            number: true,
            ..Column::text(name)
        }
    }

    /// Ids, which a narrow terminal may break after a `-`.
    pub(crate) const fn id(name: &'static str) -> Self {
        Column {
            breaks_after: Some('-'),
            ..Column::text(name)
        }
    }

    fn alignment(self) -> CellAlignment {
        if self.number {
            CellAlignment::Right
        } else {
            CellAlignment::Left
        }
    }
}

/// `1234567` as `1,234,567`.
pub(crate) fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `1 kernel`, `2 kernels`.
pub(crate) fn counted(number: usize, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", thousands(number as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(width: Option<u16>) -> String {
        let mut bytes = Vec::new();
        let look = Look {
            styled: false,
            width,
        };
        Page::new(&mut bytes, look)
            .table(
                &[Column::id("kernel"), Column::number("time")],
                vec![vec![
                    "decode-d128-g4-b16-bf16-bf16-nhd-dense-01234567".into(),
                    "35.8 µs".into(),
                ]],
            )
            .unwrap();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn a_row_is_one_line_without_escapes_where_there_is_no_terminal() {
        let text = page(None);
        assert_eq!(text.lines().count(), 2, "{text}");
        assert!(!text.contains('\u{1b}'));
        assert!(text.contains("decode-d128-g4-b16-bf16-bf16-nhd-dense-01234567"));
    }

    #[test]
    fn a_narrow_terminal_breaks_ids_after_a_dash_and_numbers_stay_whole() {
        let text = page(Some(40));
        assert!(
            text.lines().all(|line| line.chars().count() <= 40),
            "{text}"
        );
        assert!(text.contains("35.8 µs"), "{text}");
    }

    #[test]
    fn numbers_are_grouped_by_thousands() {
        assert_eq!(thousands(0), "0");
        assert_eq!(thousands(999), "999");
        assert_eq!(thousands(1_234_567), "1,234,567");
        assert_eq!(counted(1, "kernel"), "1 kernel");
        assert_eq!(counted(4096, "token"), "4,096 tokens");
    }
}
