//! Content hashes: length-prefixed fields under a domain, so that no two field lists collide by
//! where one field ends (joining with a separator would).

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// A 256-bit blake3 hash, written as 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ContentHash([u8; 32]);

/// A text that is not 64 hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("hash: expected 64 hexadecimal digits, found `{0}`")]
pub struct NotAHash(pub String);

impl ContentHash {
    /// The hash of `fields` in order, under `domain`.
    ///
    /// ```
    /// use pagesmith_spec::ContentHash;
    ///
    /// let joined = ContentHash::of("test", &[b"ab", b"c"]);
    /// assert_ne!(joined, ContentHash::of("test", &[b"a", b"bc"]));
    /// ```
    pub fn of(domain: &str, fields: &[&[u8]]) -> Self {
        let mut hasher = blake3::Hasher::new();
        for field in std::iter::once(domain.as_bytes()).chain(fields.iter().copied()) {
            hasher.update(&(field.len() as u64).to_le_bytes());
            hasher.update(field);
        }
        ContentHash(*hasher.finalize().as_bytes())
    }

    /// A hash read from stored bytes.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        ContentHash(bytes)
    }

    /// The raw bytes.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The first eight hexadecimal digits, enough for a person to tell variants apart.
    pub fn short(&self) -> String {
        self.0[..4]
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect()
    }
}

impl fmt::Display for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ContentHash({self})")
    }
}

impl FromStr for ContentHash {
    type Err = NotAHash;

    fn from_str(text: &str) -> Result<Self, NotAHash> {
        let not = || NotAHash(text.chars().take(80).collect());
        if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(not());
        }
        let mut bytes = [0; 32];
        for (index, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&text[2 * index..2 * index + 2], 16).map_err(|_| not())?;
        }
        Ok(ContentHash(bytes))
    }
}

impl Serialize for ContentHash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ContentHash {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_round_trips_and_anything_else_is_refused() {
        let hash = ContentHash::of("test", &[b"x"]);
        assert_eq!(hash.to_string().parse(), Ok(hash));
        for wrong in ["", "zz", &"g".repeat(64), &"é".repeat(32)] {
            assert!(wrong.parse::<ContentHash>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_domain_separates_equal_fields() {
        assert_ne!(ContentHash::of("a", &[b"x"]), ContentHash::of("b", &[b"x"]));
    }
}
