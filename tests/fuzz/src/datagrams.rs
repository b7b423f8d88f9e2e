//! What one peer sends to the optimizer's socket: a length in two bytes, then so many bytes, and so on.

use crate::input::Input;
use crate::trips;
use precache::link::incoming::{Incoming, LONGEST, Nonsense, Said};
use precache::link::message::{DATAGRAM, Request};
use precache_contract::enrolment::{Enrolment, Kind, LockNote};
use precache_contract::segment::Refusal;
use std::os::unix::ffi::OsStrExt;

pub fn datagrams(bytes: &[u8]) {
    let mut input = Input(bytes);
    let mut heard = Incoming::default();
    let mut length = 0;
    while !input.is_empty() {
        let length_of_this = usize::from(input.short()) % (DATAGRAM + 1);
        let datagram = input.bytes(length_of_this);
        length += datagram.len();
        match heard.take(datagram) {
            Ok(None) => assert!(length <= LONGEST),
            Ok(Some(said)) => {
                length = 0;
                check(datagram, said);
            }
            // Such a connection ends.
            Err(why) => return drop(why.to_string()),
        }
    }
}

/// What was understood is what was said.
fn check(datagram: &[u8], said: Said) {
    match said {
        Said::Enrolment(what, kind) => {
            assert_eq!(what.to_bytes(), datagram);
            assert_eq!(Enrolment::parse(&what.to_bytes()), Ok((what, kind)));
            assert!(kind != Kind::Reader || what.token != 0);
            Refusal::ALL.get(what.slot as usize).map(|why| why.explain());
        }
        Said::Lock(notice) => {
            let mut buffer = vec![0; datagram.len()];
            let same = LockNote::write(&mut buffer, notice.session, notice.private, notice.path.as_os_str().as_bytes());
            assert_eq!(same.map(<[u8]>::len), Some(datagram.len()));
            assert!(datagram.ends_with(notice.path.as_os_str().as_bytes()));
        }
        Said::Request(request) => {
            let text = serde_json::to_vec(&request).expect("what was read can be written");
            let mut again = Incoming::default();
            let read_again = text.chunks(DATAGRAM).map(|part| again.take(part)).last();
            assert!(matches!(read_again, Some(Ok(None))));
            assert!(matches!(again.take(b"\n"), Ok(Some(Said::Request(_))) | Err(Nonsense::TooLong)));
            if let Request::Open { options, .. } = request
                && options.are_sound()
            {
                trips::run_with(&options);
            }
        }
    }
}
