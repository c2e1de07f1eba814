//! The models that pagesmith knows by name.

use super::error::shorten;
use super::{ModelError, ModelShape};
use serde::Deserialize;
use std::sync::LazyLock;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    model: Vec<ModelShape>,
}

static MODELS: LazyLock<Vec<ModelShape>> = LazyLock::new(|| {
    let file: File =
        toml::from_str(include_str!("builtin.toml")).expect("a test parses the built-in models");
    file.model
});

impl ModelShape {
    /// Every built-in model.
    pub fn all() -> &'static [ModelShape] {
        &MODELS
    }

    /// The built-in model of that name.
    ///
    /// # Errors
    /// When there is none; the error lists the names and the one spelt most alike.
    pub fn by_name(name: &str) -> Result<Self, ModelError> {
        if let Some(shape) = Self::all().iter().find(|shape| shape.name() == name) {
            return Ok(shape.clone());
        }
        let known: Vec<&str> = Self::all().iter().map(ModelShape::name).collect();
        Err(ModelError::Unknown {
            name: shorten(name),
            nearest: nearest(name, &known),
            known: known.join(", "),
        })
    }
}

/// The name that differs least, unless it differs in more than a third of its letters.
fn nearest(name: &str, known: &[&'static str]) -> Option<&'static str> {
    // Spelling differs in case and separators between catalogues: "Llama_3_8B".
    let letters = |text: &str| -> Vec<char> {
        text.chars()
            .take(64)
            .filter(|letter| letter.is_alphanumeric())
            .map(|letter| letter.to_ascii_lowercase())
            .collect()
    };
    let wanted = letters(name);
    let (distance, nearest) = known
        .iter()
        .map(|known| (edit_distance(&wanted, &letters(known)), *known))
        .min_by_key(|(distance, _)| *distance)?;
    (distance * 3 <= letters(nearest).len()).then_some(nearest)
}

/// Letters to insert, delete or replace to get from one word to the other (Levenshtein).
fn edit_distance(from: &[char], to: &[char]) -> usize {
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (line, letter) in from.iter().enumerate() {
        let mut diagonal = line;
        let mut left = line + 1;
        row[0] = left;
        for (column, other) in to.iter().enumerate() {
            let above = row[column + 1];
            left = (above.min(left) + 1).min(diagonal + usize::from(letter != other));
            diagonal = above;
            row[column + 1] = left;
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edit_distance_counts_letters() {
        let distance = |from: &str, to: &str| {
            let letters = |text: &str| text.chars().collect::<Vec<_>>();
            edit_distance(&letters(from), &letters(to))
        };
        assert_eq!(distance("", ""), 0);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("abc", ""), 3);
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("flaw", "lawn"), 2);
    }
}
