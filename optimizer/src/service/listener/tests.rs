use super::*;
use crate::link::Client;
use crate::link::message::Request;
use crate::report::SessionReport;
use crate::service::reader::tests::{options, segment};
use nix::sys::socket::{ControlMessage, MsgFlags, connect, sendmsg};
use precache_contract::VERSION;
use precache_contract::enrolment::{Enrolment, LockNote};
use std::fs::File;
use std::io::IoSlice;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

const SESSION: u64 = 1;
const TOKEN: u64 = 2;

/// A listener with an open session.
fn listener(name: &str) -> Listener {
    let mut listener = Listener::bind(name).unwrap();
    open(&mut listener);
    listener
}

fn open(listener: &mut Listener) {
    listener.sessions.answer(None, request_to_open(), &[]).unwrap();
}

fn request_to_open() -> Request {
    Request::Open { version: VERSION, session: SESSION, options: options(), again: false }
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
    assert_eq!(mapped(&report(listener)), [path(&file)]);
}

/// Ends the readers, whose process is this one, when what they announced has been taken up.
fn end_readers(listener: &mut Listener) {
    for mut reader in listener.readers.drain(..) {
        while reader.uses().is_empty() {
            std::thread::yield_now();
        }
        reader.note_death();
        listener.sessions.bury(reader);
    }
}

/// The path of the file, as the kernel tells it.
fn path(file: &tempfile::NamedTempFile) -> PathBuf {
    file.path().canonicalize().unwrap()
}

/// A reader connects, and has not said yet who it is when it is heard. When it is heard next it has, has announced a mapping and has
/// a child: that inherits.
#[test]
fn who_connected_first_is_heard_first() {
    let name = name_for("order");
    let mut listener = listener(&name);
    let first = connected(&name);
    listener.hear();
    send(&first, Enrolment::new(Kind::Reader, SESSION, TOKEN, 0, 0), &segment());
    let file = file();
    send(&first, Enrolment::mapping(SESSION, TOKEN, 0, 5), file.as_file());
    send(&connected(&name), Enrolment::new(Kind::Reader, SESSION, TOKEN + 1, TOKEN, 0), &segment());
    listener.hear();
    end_readers(&mut listener);
    assert_eq!(mapped(&report(listener)), [path(&file), path(&file)]);
}

/// One thread announces a mapping over a connection that is older than the one over which another says who they are.
#[test]
fn a_mapping_may_come_before_its_reader() {
    let name = name_for("mapping");
    let mut listener = listener(&name);
    let (first, second, file) = (connected(&name), connected(&name), file());
    send(&second, Enrolment::new(Kind::Reader, SESSION, TOKEN, 0, 0), &segment());
    send(&first, Enrolment::mapping(SESSION, TOKEN, 0, 5), file.as_file());
    listener.hear();
    end_readers(&mut listener);
    assert_eq!(mapped(&report(listener)), [path(&file)]);
}

/// Readers and a lock file, of a session that is opened only then.
#[test]
fn what_is_said_before_the_session_is_open_is_taken_up() {
    let name = name_for("early");
    let mut listener = Listener::bind(&name).unwrap();
    let (reader, file, supervisor) = (connected(&name), file(), connected(&name));
    send(&reader, Enrolment::mapping(SESSION, TOKEN, 0, 5), file.as_file());
    send(&reader, Enrolment::new(Kind::Reader, SESSION, TOKEN, 0, 0), &segment());
    let mut notice = [0; LockNote::LENGTH];
    let notice = LockNote::write(&mut notice, SESSION, false, b"/a/lock.mdb").unwrap();
    sendmsg::<()>(reader.as_raw_fd(), &[IoSlice::new(notice)], &[], MsgFlags::empty(), None).unwrap();
    listener.hear();
    assert!(listener.readers.is_empty());
    tell(&supervisor, &request_to_open()).unwrap();
    listener.hear();
    listener.answer();
    end_readers(&mut listener);
    let report = report(listener);
    assert_eq!(mapped(&report), [path(&file)]);
    assert_eq!(report.locks.len(), 1);
}

/// The optimizer is this process, one of whose threads has a processor all the time.
#[test]
fn a_session_is_opened_later_where_the_answer_takes_long() {
    let name = name_for("late");
    let mut listener = Listener::bind(&name).unwrap();
    let working = Arc::new(());
    let work = Arc::downgrade(&working);
    let thread = std::thread::spawn(move || while work.strong_count() > 0 {});
    let mut client = Client::start_at(name, &options()).unwrap();
    assert!(client.is_asked());
    drop(working);
    thread.join().unwrap();
    listener.hear();
    listener.answer();
    client.note_answer().unwrap();
    assert!(!client.is_asked());
    assert_eq!(listener.connections[0].session, Some(client.session()));
}

/// More who connect at once than are accepted at once.
#[test]
fn all_who_wait_are_heard() {
    let name = name_for("many");
    let mut listener = listener(&name);
    let many = 3 * AT_ONCE as u64;
    let connections: Vec<_> = (0..many).map(|_| connected(&name)).collect();
    let file = file();
    for (index, connection) in connections.iter().enumerate() {
        send(connection, Enrolment::new(Kind::Refused, SESSION, 0, 0, index as u32 % 7), file.as_file());
    }
    listener.hear();
    assert_eq!(listener.connections.len() as u64, many);
    assert_eq!(report(listener).refused.len(), 7);
}
