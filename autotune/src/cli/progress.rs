//! Progress on standard error: a bar with the time left on a terminal, and nothing but what must be said
//! elsewhere.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use pagesmith_autotune::{Event, Observer};
use std::io::Write;

/// Draws what an operation tells.
pub(crate) struct Bar {
    bar: ProgressBar,
}

impl Bar {
    pub(crate) fn new() -> Self {
        // indicatif hides a bar whose standard error is no terminal.
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(8));
        bar.set_style(
            ProgressStyle::with_template(
                "{prefix:>9.green.bold} [{bar:24}] {pos}/{len}  {eta} left  {wide_msg}",
            )
            .expect("a constant template")
            .progress_chars("=> "),
        );
        Bar { bar }
    }

    /// A line that stays, bar or no bar.
    fn say(&self, text: impl std::fmt::Display) {
        self.bar.suspend(|| {
            // Nothing is left to be done when standard error is closed.
            let _ = writeln!(std::io::stderr(), "{text}");
        });
    }
}

impl Observer for Bar {
    fn event(&self, event: Event<'_>) {
        match event {
            // An installation is said everywhere: it downloads, and it takes a while.
            Event::Provision(progress) => self.say(format_args!("autotune: {progress}")),
            Event::Begin { work, total } => {
                self.bar.reset();
                self.bar.set_length(total as u64);
                self.bar.set_prefix(work);
                self.bar.set_message("");
                self.bar
                    .enable_steady_tick(std::time::Duration::from_millis(250));
            }
            Event::Step { about } => {
                self.bar.inc(1);
                self.bar.set_message(about.to_owned());
            }
            Event::Note { text } => self.say(format_args!("note: {text}")),
            Event::End => self.bar.finish_and_clear(),
            _ => {}
        }
    }
}
