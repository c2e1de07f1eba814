//! What people read: text with restrained colour on a terminal, the same text without it elsewhere.

use anstyle::{AnsiColor, Style};
use comfy_table::{
    Attribute, Cell, CellAlignment, ColumnConstraint, ContentArrangement, Table, presets,
};
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

    /// One line of text; on a terminal it continues below its own beginning.
    pub(crate) fn line(&mut self, text: impl Display) -> io::Result<()> {
        let text = text.to_string();
        let words = text.trim_start();
        let indent = text.len() - words.len();
        for line in self.wrapped(words, indent) {
            writeln!(self.out, "{:indent$}{line}", "")?;
        }
        Ok(())
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
        for line in self.wrapped(&text.to_string(), 0) {
            writeln!(self.out, "{bold}{line}{bold:#}")?;
        }
        Ok(())
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
        let indent = label.len() + 1;
        let mut lines = self.wrapped(&text.to_string(), indent).into_iter();
        let first = lines.next().unwrap_or_default();
        writeln!(self.out, "{style}{label}{style:#} {first}")?;
        for line in lines {
            writeln!(self.out, "{:indent$}{line}", "")?;
        }
        Ok(())
    }

    /// `name  value` with the values in one column.
    pub(crate) fn fields(&mut self, fields: &[(&str, String)]) -> io::Result<()> {
        let width = fields.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        let dim = self.style(Style::new().dimmed());
        for (name, value) in fields {
            let lines: Vec<String> = value
                .lines()
                .flat_map(|line| self.wrapped(line, width + 4))
                .collect();
            let mut lines = lines.into_iter();
            let first = lines.next().unwrap_or_default();
            writeln!(self.out, "  {dim}{name:width$}{dim:#}  {first}")?;
            for line in lines {
                writeln!(self.out, "  {:width$}  {line}", "")?;
            }
        }
        Ok(())
    }

    /// A table under a bold header. Where the terminal is too narrow, ids continue on a second line.
    pub(crate) fn table(&mut self, columns: &[Column], rows: Vec<Vec<String>>) -> io::Result<()> {
        let widest = rows.iter().flatten().map(|cell| cell.chars().count()).max();
        let mut table = self.laid_out(columns, &rows, widest.unwrap_or(0));
        if let Some(terminal) = self.look.width {
            for id_width in ID_WIDTHS {
                if width(&table) <= terminal {
                    break;
                }
                table = self.laid_out(columns, &rows, id_width);
            }
            table
                .set_content_arrangement(ContentArrangement::Dynamic)
                .set_width(terminal);
        }
        for line in table.lines() {
            writeln!(self.out, "{}", line.trim_end())?;
        }
        Ok(())
    }

    fn laid_out(&self, columns: &[Column], rows: &[Vec<String>], id_width: usize) -> Table {
        let mut table = Table::new();
        table
            .load_style(presets::NOTHING)
            .set_content_arrangement(ContentArrangement::Disabled);
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
            table.add_row(row.iter().zip(columns).map(|(text, column)| {
                let text = match column.kind {
                    Kind::Id => broken(text, id_width),
                    Kind::Text | Kind::Number => text.clone(),
                };
                Cell::new(text).set_alignment(column.alignment())
            }));
        }
        for (index, laid_out) in table.column_iter_mut().enumerate() {
            laid_out.set_padding((u16::from(index > 0), 1));
            if !matches!(
                columns.get(index).map(|column| column.kind),
                Some(Kind::Text)
            ) {
                laid_out.set_constraint(ColumnConstraint::ContentWidth);
            }
        }
        table
    }

    /// The lines that a text takes beside `indent` columns: one where there is no terminal.
    fn wrapped(&self, text: &str, indent: usize) -> Vec<String> {
        let Some(terminal) = self.look.width else {
            return vec![text.to_owned()];
        };
        let room = usize::from(terminal).saturating_sub(indent).max(20);
        let mut lines = vec![String::new()];
        let mut used = 0;
        for word in text.split(' ') {
            let length = word.chars().count();
            if used > 0 && used + 1 + length > room {
                lines.push(String::new());
                used = 0;
            }
            if let Some(line) = lines.last_mut() {
                if used > 0 {
                    line.push(' ');
                    used += 1;
                }
                line.push_str(word);
                used += length;
            }
        }
        lines
    }

    fn style(&self, style: Style) -> Style {
        if self.look.styled {
            style
        } else {
            Style::new()
        }
    }
}

/// Columns for ids, the widest first, that are tried where a table is too wide.
const ID_WIDTHS: [usize; 3] = [40, 30, 19];

/// Columns that a table takes as it is.
fn width(table: &Table) -> u16 {
    table.column_max_content_widths().iter().sum::<u16>()
        + table
            .column_iter()
            .map(|column| column.padding_width())
            .sum::<u16>()
}

/// An id in lines of at most `width` columns, each but the last ending in its `-`.
fn broken(id: &str, width: usize) -> String {
    let mut text = String::with_capacity(id.len() + 4);
    let mut used = 0;
    for part in id.split_inclusive('-') {
        if used > 0 && used + part.len() > width {
            text.push('\n');
            used = 0;
        }
        text.push_str(part);
        used += part.len();
    }
    text
}

/// A column of a table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    name: &'static str,
    kind: Kind,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    /// Wrapped between words.
    Text,
    /// Right-aligned.
    Number,
    /// Wrapped after a `-`, so that the pieces joined are the id again.
    Id,
}

impl Column {
    pub(crate) const fn text(name: &'static str) -> Self {
        Column {
            name,
            kind: Kind::Text,
        }
    }

    pub(crate) const fn number(name: &'static str) -> Self {
        Column {
            name,
            kind: Kind::Number,
        }
    }

    pub(crate) const fn id(name: &'static str) -> Self {
        Column {
            name,
            kind: Kind::Id,
        }
    }

    fn alignment(self) -> CellAlignment {
        match self.kind {
            Kind::Number => CellAlignment::Right,
            Kind::Text | Kind::Id => CellAlignment::Left,
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
    fn a_narrow_terminal_breaks_ids_after_a_dash_and_loses_none_of_it() {
        let text = page(Some(40));
        assert!(
            text.lines().all(|line| line.chars().count() <= 40),
            "{text}"
        );
        assert!(text.contains("35.8 µs"), "{text}");
        let id: String = text
            .lines()
            .skip(1)
            .filter_map(|line| line.split_whitespace().next())
            .collect();
        assert_eq!(id, "decode-d128-g4-b16-bf16-bf16-nhd-dense-01234567");
    }

    #[test]
    fn text_wraps_between_words_under_its_own_beginning() {
        let mut bytes = Vec::new();
        let look = Look {
            styled: false,
            width: Some(24),
        };
        let mut page = Page::new(&mut bytes, look);
        page.line("  one two three four five six").unwrap();
        page.bad("wrong:", "a b c d e f g h i j k").unwrap();
        let text = String::from_utf8(bytes).unwrap();
        assert_eq!(
            text,
            "  one two three four\n  five six\nwrong: a b c d e f g h i j\n       k\n"
        );
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
