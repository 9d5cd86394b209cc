// SPDX-License-Identifier: GPL-2.0-or-later
//! Reads packets of ZRTP as lines of hex digits, with the message parser of the crate zrtp. Each
//! message must be encoded again to the same bytes. Hash images must form a chain (RFC 6189 9), and
//! the hvi of a Commit must be that of the DHPart2 and the responder's Hello (4.4.1.1).
//!
//! The crate's engine cannot be a peer, of libbzrtp neither. Its packets begin with 0x505a instead of
//! 0x1000 (5), the numbers of algorithms in its Hello are at other places (5.2), its hash images and
//! MACs are constants, and its s0 and keys do not follow 4.4.1.4 and 4.5.1. A Hello is read here.
//! The second peer is therefore t/zrtp/zrtp_peer.py.
use std::collections::{BTreeMap, HashSet};
use std::io::BufRead;
use zrtp::*;

fn bytes(line: &str) -> Vec<u8> {
    (0..line.len() / 2).map(|i| u8::from_str_radix(&line[2 * i..2 * i + 2], 16).unwrap()).collect()
}

fn name(message: &Message) -> &'static str {
    match message {
        Message::Hello(_) => "Hello", // read by Seen::hello()
        Message::HelloAck => "HelloACK",
        Message::Commit(_) => "Commit",
        Message::DhPart1(_) => "DHPart1",
        Message::DhPart2(_) => "DHPart2",
        Message::Confirm1(_) => "Confirm1",
        Message::Confirm2(_) => "Confirm2",
        Message::Conf2Ack => "Conf2ACK",
        Message::Error(_) => "Error",
        Message::ErrorAck => "ErrorACK",
        Message::GoClear(_) => "GoClear",
        Message::ClearAck => "ClearACK",
        Message::SasRelay(_) => "SASrelay",
        Message::RelayAck => "RelayACK",
        Message::Ping(_) => "Ping",
        Message::PingAck(_) => "PingACK",
        Message::Unknown(_) => "unknown",
    }
}

/// What was seen so far: images, and the hvi that a Commit may have.
#[derive(Default)]
struct Seen {
    h3: HashSet<[u8; 32]>,
    h2: HashSet<[u8; 32]>,
    hellos: Vec<Vec<u8>>,
    hvi: HashSet<[u8; 32]>,
    open: HashSet<[u8; 32]>,
}

impl Seen {
    fn hello(&mut self, message: &[u8]) -> bool {
        self.hellos.push(message.to_vec());
        self.h3.insert(message[32..64].try_into().unwrap());
        message[76] & 0x20 != 0 // M: a gateway says what it is
    }

    fn judge(&mut self, message: &Message) -> bool {
        match message {
            Message::Commit(m) => {
                if let CommitNonce::Hvi(hvi) = m.nonce {
                    self.open.insert(hvi);
                }
                self.h2.insert(m.hash_image_h2);
                return self.h3.contains(&implicit_hash_sha256(&m.hash_image_h2));
            }
            Message::DhPart1(m) => {
                let h2 = implicit_hash_sha256(&m.hash_image_h1);
                return self.h3.contains(&implicit_hash_sha256(&h2));
            }
            Message::DhPart2(m) => {
                for hello in &self.hellos {
                    for hash in [HashAlgorithm::Sha256, HashAlgorithm::Sha384] {
                        self.hvi.insert(compute_hvi(hash, &message.encode(), hello).unwrap());
                    }
                }
                return self.h2.contains(&implicit_hash_sha256(&m.hash_image_h1))
                    && !self.open.is_disjoint(&self.hvi);
            }
            Message::Unknown(_) => return false,
            _ => true,
        };
        true
    }
}

fn main() {
    let (mut seen, mut count, mut wrong) = (Seen::default(), BTreeMap::new(), 0);

    for line in std::io::stdin().lock().lines() {
        let packet = bytes(line.unwrap().trim());
        let bytes = &packet[12..packet.len() - 4]; // between the header and the CRC
        let good = match Message::decode(bytes) {
            _ if bytes.starts_with(b"\x50\x5a") && &bytes[4..12] == b"Hello   " => seen.hello(bytes),
            Ok(m) => {
                *count.entry(name(&m)).or_insert(0) += 1;
                m.encode() == bytes && seen.judge(&m)
            }
            Err(e) => {
                println!("{e:?}");
                false
            }
        };
        if !good {
            wrong += 1;
            println!("wrong: {}", String::from_utf8_lossy(&packet[16..24.min(packet.len())]));
        }
    }
    println!("{count:?}, {wrong} wrong");
    std::process::exit((wrong > 0 || count.len() < 11) as i32);
}
