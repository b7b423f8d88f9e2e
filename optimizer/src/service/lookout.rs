//! Looks for writers of the databases whose readers have private lock files: a writer reuses pages that they still read. On
//! a thread of its own, for all processes of the machine are looked through, and the listener must not wait.

use super::ledger::Ledger;
use super::thread::Thread;
use precache_lmdb_tools::lockfile;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Instant;

pub struct Lookout {
    questions: Sender<PathBuf>,
    answers: Receiver<()>,
    unanswered: usize,
    thread: Thread,
}

impl Lookout {
    /// Looks for one session, whose ledger is told of every writer.
    pub fn begin(ledger: Arc<Ledger>) -> io::Result<Self> {
        let (questions, asked) = channel::<PathBuf>();
        let (answering, answers) = channel();
        let look = move || {
            for data in asked {
                look_for_writers(&data, &ledger);
                // Nobody waits any more when the session is over.
                let _ = answering.send(());
            }
        };
        let thread = Thread::start("lookout", look)?;
        Ok(Self { questions, answers, unanswered: 0, thread })
    }

    /// Has the processes looked through that have this data file open.
    pub fn ask(&mut self, data: PathBuf) {
        self.unanswered += usize::from(self.questions.send(data).is_ok());
    }

    /// Waits for what is still looked for; false: it does not get on.
    pub fn finish(&mut self) -> bool {
        let Self { answers, unanswered, thread, .. } = self;
        *unanswered == 0
            || thread.wait_until(Instant::now(), |look| {
                *unanswered -= usize::from(answers.recv_timeout(look).is_ok());
                *unanswered == 0
            })
    }
}

fn look_for_writers(data: &Path, ledger: &Ledger) {
    let writers = match lockfile::scan(data) {
        Ok(scan) => scan.writers,
        Err(error) => {
            return ledger.note_trouble(format!("cannot see whether {} is open for writing: {error}", data.display()));
        }
    };
    for writer in writers {
        ledger.note_trouble(format!(
            "warning: process {} ({}) has {} open for writing: what readers with private lock files read may change under \
             them; run them without --private-lock",
            writer.pid,
            writer.command,
            data.display()
        ));
    }
}
