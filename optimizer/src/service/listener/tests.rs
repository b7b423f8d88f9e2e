use super::*;
use crate::link::message::Request;
use crate::report::SessionReport;
use crate::service::reader::tests::{options, segment};
use nix::sys::socket::{ControlMessage, MsgFlags, connect, sendmsg};
use precache_contract::VERSION;
use std::fs::File;
use std::io::IoSlice;
use std::path::Path;
use std::process::{Command, Stdio};

const SESSION: u64 = 1;
const TOKEN: u64 = 2;

/// A listener with an open session.
fn listener(name: &str) -> Listener {
    let mut listener = Listener::bind(name).unwrap();
    let open = Request::Open { version: VERSION, session: SESSION, options: options(), again: false };
    listener.sessions.answer(None, open, &[]).unwrap();
    listener
}

/// A name that no other test has.
fn name_for(test: &str) -> String {
    format!("precache-{test}-{}", std::process::id())
}

fn connected(name: &str) -> OwnedFd {
    let socket = socket(AddressFamily::Unix, SockType::SeqPacket, SockFlag::SOCK_CLOEXEC, None).unwrap();
    connect(socket.as_raw_fd(), &UnixAddr::new_abstract(name.as_bytes()).unwrap()).unwrap();
    socket
}

fn send(socket: &OwnedFd, what: Enrolment, file: &File) {
    let (bytes, descriptors) = (what.to_bytes(), [file.as_raw_fd()]);
    let control = [ControlMessage::ScmRights(&descriptors)];
    sendmsg::<()>(socket.as_raw_fd(), &[IoSlice::new(&bytes)], &control, MsgFlags::empty(), None).unwrap();
}

fn file() -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().unwrap();
    file.as_file().set_len(1 << 20).unwrap();
    file
}

/// What the supervisor is told when its program has ended.
fn report(mut listener: Listener) -> SessionReport {
    match listener.sessions.answer(Some(SESSION), Request::Finish, &listener.readers) {
        Err(Answer::Report(report)) => *report,
        other => panic!("no report: {other:?}"),
    }
}

fn mapped(report: &SessionReport) -> Vec<&Path> {
    report.readers.iter().flat_map(|reader| &reader.mappings).map(|mapping| mapping.file.as_path()).collect()
}

/// A reader announces a mapping and dies, after everybody has been heard and before the dead are looked for.
#[test]
fn what_the_dead_have_said_is_heard_before_they_are_buried() {
    let name = name_for("dead");
    let mut listener = listener(&name);
    let mut process = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
    let what = Enrolment::new(Kind::Reader, SESSION, TOKEN, 0, 0);
    let terms = listener.sessions.terms_of(SESSION);
    let reader = Reader::begin(process.id() as i32, &segment(), what, None, terms, &listener.files).unwrap();
    listener.readers.push(reader);
    listener.hear();

    let file = file();
    send(&connected(&name), Enrolment::mapping(SESSION, TOKEN, 0, 5), file.as_file());
    process.kill().unwrap();
    process.wait().unwrap();
    listener.bury_the_dead();
    assert!(listener.readers.is_empty());
    assert_eq!(mapped(&report(listener)), [file.path()]);
}

/// A reader connects, and has not said who it is when it is heard; when it is heard next it has, and has announced a mapping
/// over a second connection.
#[test]
fn who_connected_first_is_heard_first() {
    let name = name_for("order");
    let mut listener = listener(&name);
    let first = connected(&name);
    listener.hear();
    send(&first, Enrolment::new(Kind::Reader, SESSION, TOKEN, 0, 0), &segment());
    let (file, second) = (file(), connected(&name));
    send(&second, Enrolment::mapping(SESSION, TOKEN, 0, 5), file.as_file());
    listener.hear();
    // Ends the reader, whose process is this one: its thread has taken up what was announced.
    let mut reader = listener.readers.pop().expect("a reader");
    reader.note_death();
    listener.sessions.bury(reader);
    assert_eq!(mapped(&report(listener)), [file.path()]);
}
