use super::*;
use crate::link::message::Request;
use crate::report::SessionReport;
use crate::service::reader::tests::{options, segment};
use nix::sys::socket::{ControlMessage, MsgFlags, connect, sendmsg};
use precache_contract::VERSION;
use precache_contract::enrolment::{Enrolment, LockNote};
use std::fs::File;
use std::io::IoSlice;
use std::path::Path;
use std::process::{Command, Stdio};

const SESSION: u64 = 1;
const TOKEN: u64 = 2;

/// A listener with an open session.
fn listener(name: &str) -> Listener {
    let mut listener = Listener::bind(name).unwrap();
    open(&mut listener);
    listener
}

fn open(listener: &mut Listener) {
    let open = Request::Open { version: VERSION, session: SESSION, options: options(), again: false };
    listener.sessions.answer(None, open, &[]).unwrap();
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
    assert_eq!(mapped(&report(listener)), [file.path().canonicalize().unwrap()]);
}

/// Ends a reader whose process is this one: its thread has taken up what was announced.
fn end_reader(listener: &mut Listener) {
    let mut reader = listener.readers.pop().expect("a reader");
    reader.note_death();
    listener.sessions.bury(reader);
}

/// A reader connects, and has not said who it is when it is heard; when it is heard next it has, and has announced a mapping
/// over a second connection. Or over the first, before it said so over the second.
#[test]
fn a_mapping_may_come_before_its_reader() {
    for is_mapping_first in [false, true] {
        let name = name_for("order");
        let mut listener = listener(&name);
        let (first, file) = (connected(&name), file());
        listener.hear();
        let second = connected(&name);
        let (reader, mapping) = if is_mapping_first { (second, first) } else { (first, second) };
        send(&reader, Enrolment::new(Kind::Reader, SESSION, TOKEN, 0, 0), &segment());
        send(&mapping, Enrolment::mapping(SESSION, TOKEN, 0, 5), file.as_file());
        listener.hear();
        end_reader(&mut listener);
        assert_eq!(mapped(&report(listener)), [file.path().canonicalize().unwrap()], "{is_mapping_first}");
    }
}

/// Readers and a lock file, of a session that is opened only then.
#[test]
fn what_is_said_before_the_session_is_open_is_taken_up() {
    let name = name_for("early");
    let mut listener = Listener::bind(&name).unwrap();
    let (socket, file) = (connected(&name), file());
    send(&socket, Enrolment::mapping(SESSION, TOKEN, 0, 5), file.as_file());
    send(&socket, Enrolment::new(Kind::Reader, SESSION, TOKEN, 0, 0), &segment());
    let mut notice = [0; LockNote::LENGTH];
    let notice = LockNote::write(&mut notice, SESSION, false, b"/a/lock.mdb").unwrap();
    sendmsg::<()>(socket.as_raw_fd(), &[IoSlice::new(notice)], &[], MsgFlags::empty(), None).unwrap();
    listener.hear();
    assert!(listener.readers.is_empty());
    open(&mut listener);
    listener.take_early(SESSION);
    end_reader(&mut listener);
    let report = report(listener);
    assert_eq!(mapped(&report), [file.path().canonicalize().unwrap()]);
    assert_eq!(report.locks.len(), 1);
}
