//! What long work tells while it goes on.

use pagesmith_codegen::Progress;

/// Something that happened.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// The compiler is being installed.
    Provision(&'a Progress),
    /// Work of `total` steps begins.
    Begin {
        /// What is done, such as `forging`.
        work: &'static str,
        /// Steps.
        total: usize,
    },
    /// A step is done.
    Step {
        /// What it was about.
        about: &'a str,
    },
    /// Something to know, such as a damaged file that is replaced.
    Note {
        /// In words.
        text: &'a str,
    },
    /// The work is done.
    End,
}

/// Hears of each event, from several threads.
pub trait Observer: Sync {
    /// Called once an event.
    fn event(&self, event: Event<'_>);
}

/// Nobody listens.
impl Observer for () {
    fn event(&self, _: Event<'_>) {}
}
