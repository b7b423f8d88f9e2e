//! What strangers of the same user do to an optimizer. Each is a process of its own: what it leaves behind goes with it.

use super::{Place, say_and_wait};
use crate::strange_optimizers::Dice;
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, SealFlag, fcntl};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::socket::{
    AddressFamily, ControlMessage, MsgFlags, SockFlag, SockType, UnixAddr, connect, recv, sendmsg, setsockopt, socket,
    sockopt::ReceiveTimeout,
};
use nix::sys::time::{TimeVal, TimeValLike};
use nix::unistd::pipe;
use precache_contract::VERSION;
use precache_contract::enrolment::{Enrolment, Kind};
use precache_contract::ring::{Advice, News, What};
use precache_contract::segment::Segment;
use serde_json::json;
use std::fs::File;
use std::io::IoSlice;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::sync::atomic::{AtomicU64, Ordering::*};

/// What a stranger does.
pub type Manner = fn(&Place);

/// By name.
pub const STRANGERS: [(&str, Manner); 10] = [
    ("only_connects", only_connects),
    ("talks_nonsense", talks_nonsense),
    ("asks_for_what_it_must_not_have", asks_for_what_it_must_not_have),
    ("sends_strange_descriptors", sends_strange_descriptors),
    ("sends_many_descriptors", sends_many_descriptors),
    ("cuts_its_memory_short", cuts_its_memory_short),
    ("belongs_to_no_session", belongs_to_no_session),
    ("comes_too_early", comes_too_early),
    ("maps_strange_files", maps_strange_files),
    ("writes_rubbish", writes_rubbish),
];

impl Place {
    fn connect(&self) -> OwnedFd {
        let socket = socket(AddressFamily::Unix, SockType::SeqPacket, SockFlag::SOCK_CLOEXEC, None).expect("a socket");
        setsockopt(&socket, ReceiveTimeout, &TimeVal::seconds(20)).expect("a time limit");
        let name = UnixAddr::new_abstract(self.socket.as_bytes()).expect("a name");
        connect(socket.as_raw_fd(), &name).expect("the optimizer listens");
        socket
    }

    fn request_to_open(&self, version: u32, session: u64, threshold: u8) -> Vec<u8> {
        let options = json!({
            "distance": 1 << 20, "distance_auto": true, "size": 1 << 23, "size_auto": true, "threshold": threshold,
            "data": [], "exclude": [], "min_file": 1 << 20, "ranges": [], "mode": "on", "protect": "auto",
            "populate": "auto", "jobs": null, "max_inflight": 64, "engine": null, "cache_limit": null,
            "private_lock": false, "quiet": true, "verbose": false,
        });
        let open = json!({"Open": {"version": version, "session": session, "options": options, "again": false}});
        format!("{open}\n").into_bytes()
    }
}

/// One datagram with descriptors. The optimizer may have hung up already.
fn send(socket: &OwnedFd, bytes: &[u8], files: &[BorrowedFd]) -> Result<usize, Errno> {
    let numbers: Vec<_> = files.iter().map(|file| file.as_raw_fd()).collect();
    let rights = [ControlMessage::ScmRights(&numbers)];
    let control = if numbers.is_empty() { &[][..] } else { &rights[..] };
    sendmsg::<()>(socket.as_raw_fd(), &[IoSlice::new(bytes)], control, MsgFlags::MSG_NOSIGNAL, None)
}

/// What comes until the optimizer hangs up, which it must.
fn last_words(socket: &OwnedFd) -> String {
    let (mut words, mut part) = (Vec::new(), vec![0; 64 << 10]);
    loop {
        match recv(socket.as_raw_fd(), &mut part, MsgFlags::empty()) {
            Ok(0) | Err(Errno::ECONNRESET) => return String::from_utf8(words).expect("JSON"),
            Ok(length) => words.extend_from_slice(&part[..length]),
            Err(error) => panic!("the optimizer does not hang up: {error}"),
        }
    }
}

/// All that was sent has been heard when this is.
fn must_be_heard_out(socket: &OwnedFd) {
    send(socket, b"nonsense", &[]).expect("it listens until here");
    assert_eq!(last_words(socket), "");
}

fn talks_nonsense(place: &Place) {
    let honest = Enrolment::mapping(place.session, 1, 0, 1).to_bytes();
    let with = |at: usize, value: u32| {
        let mut bytes = honest.to_vec();
        bytes[at..at + 4].copy_from_slice(&value.to_ne_bytes());
        bytes
    };
    let nonsense = [
        vec![0],
        honest[..honest.len() - 1].to_vec(),
        [&honest[..], &[0]].concat(),
        with(0, 0),
        with(8, VERSION + 1),
        with(12, 0),
        with(12, 7),
        with(12, u32::MAX),
        vec![b'p'; 100 << 10],
        b"{}\n".to_vec(),
        b"\"Nothing\"\n".to_vec(),
        [&b"{\"Open\":"[..], &[b'['; 20_000], b"\n"].concat(),
        [&b"\"\xff\xfe"[..], b"\n"].concat(),
        // A reader that every other one would name as its parent.
        Enrolment::new(Kind::Reader, place.session, 0, 0, 0).to_bytes().to_vec(),
    ];
    for datagram in &nonsense {
        let socket = place.connect();
        send(&socket, datagram, &[]).expect("it listens");
        assert_eq!(last_words(&socket), "", "{:?}", String::from_utf8_lossy(datagram));
    }
    let endless = place.connect();
    while send(&endless, &[b'"'; 32 << 10], &[]).is_ok() {}
    assert_eq!(last_words(&endless), "");
}

fn asks_for_what_it_must_not_have(place: &Place) {
    let not_open = place.session ^ 1;
    for request in [
        b"\"Finish\"\n".to_vec(),
        place.request_to_open(VERSION + 1, not_open, 75),
        place.request_to_open(VERSION, not_open, 0),
        // Somebody else's.
        place.request_to_open(VERSION, place.session, 75),
    ] {
        let socket = place.connect();
        send(&socket, &request, &[]).expect("it listens");
        assert!(last_words(&socket).starts_with("{\"Refused\":"), "{:?}", String::from_utf8_lossy(&request));
    }
    let twice = place.connect();
    let open = place.request_to_open(VERSION, not_open, 75);
    let (head, tail) = open.split_at(10);
    for part in [head, tail, &open[..]] {
        send(&twice, part, &[]).expect("it listens");
    }
    let answers = last_words(&twice);
    assert!(answers.starts_with("\"Opened\"\n{\"Refused\":"), "{answers}");
}

fn memory(length: usize, seals: SealFlag) -> File {
    let file =
        File::from(memfd_create("stranger", MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING).expect("memory"));
    file.set_len(length as u64).expect("there is room");
    fcntl(&file, FcntlArg::F_ADD_SEALS(seals)).expect("it can be sealed");
    file
}

/// Files that have the form of none that a reader sends.
fn strange_files(place: &Place) -> Vec<OwnedFd> {
    let (end, other_end) = pipe().expect("a pipe");
    let path_only = File::options().read(true).custom_flags(libc::O_PATH).open(&place.data).expect("it is there");
    let null = File::options().write(true).open("/dev/null").expect("it is there");
    let (empty, folder) = (memory(0, SealFlag::empty()), File::open("/").expect("it is there"));
    let zeros = File::open("/dev/zero").expect("it is there");
    let files = [path_only, null, empty, folder, zeros].map(OwnedFd::from);
    files.into_iter().chain([end, other_end, place.connect()]).collect()
}

fn sends_strange_descriptors(place: &Place) {
    let length = Segment::LENGTH;
    let read_only = |file: &File| File::open(format!("/proc/self/fd/{}", file.as_raw_fd())).expect("it is ours");
    let of_other_version = memory(length, SealFlag::F_SEAL_SHRINK);
    let whole = memory(length, SealFlag::F_SEAL_SHRINK);
    let memories = [
        memory(length, SealFlag::empty()),
        memory(length, SealFlag::F_SEAL_GROW),
        memory(length - 4096, SealFlag::F_SEAL_SHRINK),
        memory(length + 4096, SealFlag::F_SEAL_SHRINK),
        memory(length, SealFlag::F_SEAL_SHRINK | SealFlag::F_SEAL_WRITE),
        read_only(&whole),
        of_other_version,
    ];
    let socket = place.connect();
    for (number, file) in strange_files(place).into_iter().chain(memories.map(OwnedFd::from)).enumerate() {
        let token = 1 + number as u64;
        for datagram in [
            Enrolment::new(Kind::Reader, place.session, token, 0, 0),
            Enrolment::new(Kind::Refused, place.session, token, 0, 9),
            Enrolment::mapping(place.session, token, 0, 1),
            Enrolment::new(Kind::Loaded, place.session, 0, 0, 0),
        ] {
            send(&socket, &datagram.to_bytes(), &[file.as_fd()]).expect("it listens");
        }
    }
    // None at all.
    send(&socket, &Enrolment::new(Kind::Reader, place.session, 1, 0, 0).to_bytes(), &[]).expect("it listens");
    must_be_heard_out(&socket);
}

fn sends_many_descriptors(place: &Place) {
    let file = File::open("/dev/null").expect("it is there");
    let enrolment = Enrolment::new(Kind::Reader, place.session, 1, 0, 0).to_bytes();
    for datagram in [&enrolment[..], &b"nonsense"[..]] {
        for count in [2, 3, 5, 253] {
            let socket = place.connect();
            send(&socket, datagram, &vec![file.as_fd(); count]).expect("it listens");
            assert_eq!(last_words(&socket), "");
        }
    }
    // Beside a request, which needs none.
    let socket = place.connect();
    send(&socket, b"\"Finish\"\n", &[file.as_fd()]).expect("it listens");
    assert!(last_words(&socket).starts_with("{\"Refused\":"));
}

/// After it has been handed over: whoever touched what is gone would get SIGBUS.
fn cuts_its_memory_short(place: &Place) {
    for (token, seals) in [(1, SealFlag::empty()), (2, SealFlag::F_SEAL_GROW)] {
        let file = memory(Segment::LENGTH, seals);
        nix::sys::uio::pwrite(&file, &VERSION.to_ne_bytes(), 0).expect("there is room");
        let socket = place.connect();
        let datagram = Enrolment::new(Kind::Reader, place.session, token, 0, 0).to_bytes();
        send(&socket, &datagram, &[file.as_fd()]).expect("it listens");
        must_be_heard_out(&socket);
        file.set_len(0).expect("it is not sealed");
        let socket = place.connect();
        let datagram = Enrolment::mapping(place.session, token, 0, 1).to_bytes();
        send(&socket, &datagram, &[file.as_fd()]).expect("it listens");
        must_be_heard_out(&socket);
    }
}

/// More than are kept, in case that their session is opened soon.
fn belongs_to_no_session(place: &Place) {
    let file = File::open("/dev/null").expect("it is there");
    let socket = place.connect();
    for token in 1..=1500 {
        let datagram = Enrolment::new(Kind::Reader, place.session ^ 1, token, 0, 0).to_bytes();
        send(&socket, &datagram, &[file.as_fd()]).expect("it listens");
    }
    must_be_heard_out(&socket);
}

/// Its session is opened in the end, and told of those for whom there was no place, and of a descriptor that did not come.
fn comes_too_early(place: &Place) {
    let session = place.session ^ 2;
    let early = place.connect();
    for _ in 0..1500 {
        send(&early, &Enrolment::new(Kind::Loaded, session, 0, 0, 0).to_bytes(), &[]).expect("it listens");
    }
    must_be_heard_out(&early);
    let supervisor = place.connect();
    send(&supervisor, &place.request_to_open(VERSION, session, 75), &[]).expect("it listens");
    let mut opened = [0; 64];
    let length = recv(supervisor.as_raw_fd(), &mut opened, MsgFlags::empty()).expect("it answers");
    assert_eq!(&opened[..length], b"\"Opened\"\n");
    let reader = place.connect();
    send(&reader, &Enrolment::new(Kind::Reader, session, 9, 0, 0).to_bytes(), &[]).expect("it listens");
    must_be_heard_out(&reader);
    send(&supervisor, b"\"Finish\"\n", &[]).expect("it listens");
    let report = last_words(&supervisor);
    let is_told = |what| assert!(report.contains(what), "{what}: {report}");
    is_told("enrolments came too early");
    is_told("did not arrive");
}

/// A reader's memory, and the connection over which it was handed over.
struct Reader {
    segment: &'static Segment,
    socket: OwnedFd,
    session: u64,
    token: u64,
}

impl Reader {
    fn enrol(place: &Place) -> Self {
        let file = memory(Segment::LENGTH, SealFlag::F_SEAL_SHRINK);
        let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
        // SAFETY: a new mapping at a place of the kernel's choice.
        let address =
            unsafe { libc::mmap(std::ptr::null_mut(), Segment::LENGTH, protection, flags, file.as_raw_fd(), 0) };
        assert_ne!(address, libc::MAP_FAILED);
        // SAFETY: as long as a segment, sealed at that length, never unmapped, and made of atomics.
        let segment = unsafe { &*address.cast::<Segment>() };
        segment.version.store(VERSION, SeqCst);
        let token = u64::from(std::process::id());
        let socket = place.connect();
        let datagram = Enrolment::new(Kind::Reader, place.session, token, 0, 0).to_bytes();
        send(&socket, &datagram, &[file.as_fd()]).expect("it listens");
        Self { segment, socket, session: place.session, token }
    }

    fn register(&self, slot: usize, generation: u32, offset: u64, length: u64) {
        let mapping = &self.segment.mappings[slot];
        mapping.offset.store(offset, SeqCst);
        mapping.length.store(length, SeqCst);
        mapping.generation.store(generation, SeqCst);
    }

    fn announce(&self, slot: u32, generation: u32, file: BorrowedFd) {
        let datagram = Enrolment::mapping(self.session, self.token, slot, generation).to_bytes();
        send(&self.socket, &datagram, &[file]).expect("it listens");
    }
}

fn maps_strange_files(place: &Place) {
    let reader = Reader::enrol(place);
    // Not what the honest reader reads.
    let data = File::open("/proc/self/exe").expect("it is there");
    for (slot, file) in strange_files(place).iter().enumerate() {
        reader.register(slot, 1, 0, 1 << 30);
        reader.announce(slot as u32, 1, file.as_fd());
        reader.announce(slot as u32, 3, file.as_fd());
    }
    for (slot, (offset, length)) in (32..).zip([(u64::MAX, 1), (1 << 63, 1 << 63), (0, 0), (1, u64::MAX), (4097, 3)]) {
        reader.register(slot, 1, offset, length);
        reader.announce(slot as u32, 1, data.as_fd());
    }
    for slot in [64, 65_535, 65_536, u32::MAX] {
        reader.announce(slot, 1, data.as_fd());
    }
    for offset in (0..64).map(|step| step << 16).chain([u64::MAX, 1 << 63, 4097]) {
        for slot in (0..40).chain([64, u16::MAX]) {
            reader.segment.news.push(News { slot, generation: 1, offset, what: What::Trip });
        }
        // The thread looks at each turn of these.
        reader.announce(0, 3, data.as_fd());
    }
    must_be_heard_out(&reader.socket);
}

/// Registers a mapping as a reader does, and then writes whatever comes to its mind while the optimizer looks.
fn writes_rubbish(place: &Place) {
    let reader = Reader::enrol(place);
    // Not what the honest reader reads.
    let data = File::open("/proc/self/exe").expect("it is there");
    let mut dice = Dice(u64::from(std::process::id()) | 1);
    let words = size_of::<Segment>() / size_of::<AtomicU64>();
    let mut write = || {
        for slot in 0..4 {
            reader.register(slot, 1, dice.throw() % (1 << 27), dice.throw() % (1 << 27));
            reader.announce(slot as u32, 1, data.as_fd());
        }
        for step in 0..64 {
            let offset = if step % 4 == 0 { dice.throw() } else { step << 16 };
            let what = match step % 16 {
                15 => What::Advice(Advice::WillNeed, dice.throw() >> 3),
                14 => What::Advice(Advice::DontNeed, dice.throw() >> 3),
                13 => What::Advice(Advice::Random, dice.throw() >> 3),
                _ => What::Trip,
            };
            reader.segment.news.push(News { slot: (step % 4) as u16, generation: 1, offset, what });
        }
        for _ in 0..64 {
            // SAFETY: within the segment, which is made of atomics.
            let word =
                unsafe { &*(reader.segment as *const Segment as *const AtomicU64).add(dice.throw() as usize % words) };
            let value = dice.throw();
            word.store(value >> (dice.throw() % 64), Relaxed);
        }
        reader.segment.sleeper.0.store(1, SeqCst);
    };
    (0..1000).for_each(|_| write());
    say_and_wait(write);
}

/// More connections than are kept.
fn only_connects(place: &Place) {
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).expect("a limit");
    setrlimit(Resource::RLIMIT_NOFILE, hard, hard).expect("it can be raised that far");
    let connections: Vec<_> = (0..1500).map(|_| place.connect()).collect();
    say_and_wait(|| ());
    drop(connections);
}

/// Many ask at once; each is answered.
pub fn asks_with_many(place: &Place) {
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).expect("a limit");
    setrlimit(Resource::RLIMIT_NOFILE, hard, hard).expect("it can be raised that far");
    let connections: Vec<_> = (0..3000).map(|_| place.connect()).collect();
    for connection in &connections {
        send(connection, b"\"Finish\"\n", &[]).expect("it will listen");
    }
    println!("here");
    for connection in &connections {
        assert!(last_words(connection).starts_with("{\"Refused\":"));
    }
}
