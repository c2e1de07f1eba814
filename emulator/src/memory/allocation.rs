//! One allocation: its words and, for each byte, whether it was written.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Data and shadow of one allocation.
///
/// Blocks that run in parallel may touch the same bytes when the kernel under test is wrong, so every access is
/// a relaxed atomic of one fixed size: a word. On real CPUs that is a plain load or store.
/// Both arrays come zeroed from the operating system and cost nothing until touched.
pub(crate) struct Allocation {
    pub(crate) name: Arc<str>,
    pub(crate) base: u64,
    pub(crate) bytes: u64,
    words: Box<[AtomicU32]>,
    /// One bit a byte, set when it was written.
    written: Box<[AtomicU32]>,
}

impl std::fmt::Debug for Allocation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} at {:#x}, {} bytes", self.name, self.base, self.bytes)
    }
}

/// Zeroed words, lazily committed; `None` when the host has no memory.
fn zeroed(words: u64) -> Option<Box<[AtomicU32]>> {
    let layout = std::alloc::Layout::array::<AtomicU32>(usize::try_from(words).ok()?).ok()?;
    if layout.size() == 0 {
        return Some(Box::default());
    }
    // SAFETY: the layout has a size; `alloc_zeroed` returns null or a block of that layout, and zero bytes
    // are valid `AtomicU32`s. `Box` frees it with the same layout and allocator.
    unsafe {
        let start = std::alloc::alloc_zeroed(layout).cast::<AtomicU32>();
        let slice = std::ptr::slice_from_raw_parts_mut(start, layout.size() / 4);
        (!start.is_null()).then(|| Box::from_raw(slice))
    }
}

/// Bits `from..from + count` of a word.
const fn bits(from: u32, count: u32) -> u32 {
    (u32::MAX >> (32 - count)) << from
}

impl Allocation {
    pub(crate) fn new(name: Arc<str>, base: u64, bytes: u64) -> Option<Self> {
        let words = zeroed(bytes.div_ceil(4))?;
        let written = zeroed(bytes.div_ceil(32))?;
        Some(Self {
            name,
            base,
            bytes,
            words,
            written,
        })
    }

    pub(crate) const fn end(&self) -> u64 {
        self.base + self.bytes
    }

    /// Whether all bytes of an access lie inside.
    pub(crate) const fn contains(&self, address: u64, bytes: u64) -> bool {
        address >= self.base
            && address - self.base <= self.bytes
            && bytes <= self.bytes - (address - self.base)
    }

    /// The words, for accesses that are whole words.
    #[inline]
    pub(crate) fn words(&self) -> &[AtomicU32] {
        &self.words
    }

    /// One bit a byte, 32 bytes an element.
    #[inline]
    pub(crate) fn written(&self) -> &[AtomicU32] {
        &self.written
    }

    /// Reads bytes at an offset that is inside.
    pub(crate) fn read(&self, offset: u64, out: &mut [u8]) {
        let mut at = offset;
        let mut rest = out;
        while !rest.is_empty() {
            let skip = (at % 4) as usize;
            let take = rest.len().min(4 - skip);
            let word = self.words[(at / 4) as usize].load(Relaxed).to_le_bytes();
            let (now, later) = rest.split_at_mut(take);
            now.copy_from_slice(&word[skip..skip + take]);
            rest = later;
            at += take as u64;
        }
    }

    /// Writes bytes at an offset that is inside; does not mark them.
    pub(crate) fn write(&self, offset: u64, data: &[u8]) {
        let mut at = offset;
        let mut rest = data;
        while !rest.is_empty() {
            let skip = (at % 4) as usize;
            let take = rest.len().min(4 - skip);
            let (now, later) = rest.split_at(take);
            let word = &self.words[(at / 4) as usize];
            if take == 4 {
                word.store(
                    u32::from_le_bytes([now[0], now[1], now[2], now[3]]),
                    Relaxed,
                );
            } else {
                let mut value = [0; 4];
                value[skip..skip + take].copy_from_slice(now);
                let keep = !bits(skip as u32 * 8, take as u32 * 8);
                let value = u32::from_le_bytes(value);
                // The neighbours in this word may belong to another block: replace only these bytes.
                let _ = word.fetch_update(Relaxed, Relaxed, |old| Some(old & keep | value));
            }
            rest = later;
            at += take as u64;
        }
    }

    /// Calls `f` with each shadow word of a range and the bits of the range in it.
    fn shadow(&self, offset: u64, bytes: u64, mut f: impl FnMut(&AtomicU32, u32) -> bool) {
        let mut at = offset;
        let end = offset + bytes;
        while at < end {
            let skip = at % 32;
            let take = (end - at).min(32 - skip);
            if !f(
                &self.written[(at / 32) as usize],
                bits(skip as u32, take as u32),
            ) {
                return;
            }
            at += take;
        }
    }

    /// Marks bytes as written.
    #[inline]
    pub(crate) fn mark(&self, offset: u64, bytes: u64) {
        self.shadow(offset, bytes, |word, mask| {
            if word.load(Relaxed) & mask != mask {
                word.fetch_or(mask, Relaxed);
            }
            true
        });
    }

    /// Marks bytes as never written.
    pub(crate) fn unmark(&self, offset: u64, bytes: u64) {
        self.shadow(offset, bytes, |word, mask| {
            word.fetch_and(!mask, Relaxed);
            true
        });
    }

    /// Whether all bytes were written.
    #[inline]
    pub(crate) fn is_written(&self, offset: u64, bytes: u64) -> bool {
        let mut all = true;
        self.shadow(offset, bytes, |word, mask| {
            all = word.load(Relaxed) & mask == mask;
            all
        });
        all
    }

    /// Sets bytes.
    pub(crate) fn fill(&self, offset: u64, bytes: u64, value: u8) {
        let head = offset.next_multiple_of(4).min(offset + bytes);
        let tail = (offset + bytes) / 4 * 4;
        self.write(offset, &[value; 4][..(head - offset) as usize]);
        if tail > head {
            let word = u32::from_le_bytes([value; 4]);
            for slot in &self.words[(head / 4) as usize..(tail / 4) as usize] {
                slot.store(word, Relaxed);
            }
        }
        if tail >= head {
            self.write(tail, &[value; 4][..(offset + bytes - tail) as usize]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_survive_at_every_offset_and_length() {
        for offset in 0..9u64 {
            for length in 1..20usize {
                let memory = Allocation::new("a".into(), 256, 64).unwrap();
                memory.fill(0, 64, 0xEE);
                let data: Vec<u8> = (1..=length as u8).collect();
                memory.write(offset, &data);
                memory.mark(offset, length as u64);
                let mut back = vec![0; 64];
                memory.read(0, &mut back);
                let mut expected = vec![0xEE; 64];
                expected[offset as usize..offset as usize + length].copy_from_slice(&data);
                assert_eq!(back, expected);
                for byte in 0..64 {
                    let inside = byte >= offset && byte < offset + length as u64;
                    assert_eq!(memory.is_written(byte, 1), inside);
                }
                memory.unmark(offset, 1);
                assert!(!memory.is_written(offset, length as u64));
                memory.fill(offset, length as u64, 7);
                memory.read(0, &mut back);
                expected[offset as usize..offset as usize + length].fill(7);
                assert_eq!(back, expected);
            }
        }
    }
}
