// SPDX-License-Identifier: GPL-2.0-or-later

//! A WebRTC terminal by str0m. It speaks the protocol of t/webrtc/peer.py on stdin and stdout.
mod tone;

use std::collections::HashMap;
use std::io::{self, BufRead, Write};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::mpsc::{channel, Receiver};
use std::time::{Duration, Instant};

use serde_json::{json, Value};
use str0m::change::{SdpAnswer, SdpOffer, SdpPendingOffer};
use str0m::media::{Direction, MediaKind, Mid, Pt};
use str0m::net::{Protocol, Receive};
use str0m::rtp::RtpWrite;
use str0m::{Candidate, Event, IceConnectionState, Input, Output, Rtc, RtcConfig};

const FRAME: Duration = Duration::from_millis(20);
const MARGIN: Duration = Duration::from_millis(5);

type Failure = Box<dyn std::error::Error>;

struct Options {
    tone: u32,
    address: IpAddr,
    fault: bool,
    lite: bool,
}

/// What was received of one SSRC: the lowest and the highest sequence number, and how many.
struct Run {
    first: u64,
    highest: u64,
    got: u64,
}

struct Terminal {
    options: Options,
    rtc: Rtc,
    socket: UdpSocket,
    own: SocketAddr,
    pending: Option<SdpPendingOffer>,
    mid: Option<Mid>,
    ice: IceConnectionState,
    dtls: bool,
    frames: Vec<Vec<u8>>,
    next_frame: Option<Instant>,
    ear: tone::Ear,
    seen: HashMap<u32, Run>,
    packets_in: u64,
    packets_out: u64,
    first_in: u64,
    first_out: u64,
    log: Vec<String>,
}

/// CLOCK_MONOTONIC in nanoseconds. The standard library has it, but does not tell it: /proc/uptime has 10 ms only.
fn now_ns() -> u64 {
    #[repr(C)]
    struct Timespec {
        seconds: i64,
        nanoseconds: i64,
    }
    extern "C" {
        fn clock_gettime(clock: i32, time: *mut Timespec) -> i32;
    }
    let mut time = Timespec { seconds: 0, nanoseconds: 0 };
    unsafe { clock_gettime(1, &mut time) };
    time.seconds as u64 * 1_000_000_000 + time.nanoseconds as u64
}

fn wrong_fingerprint(sdp: &str) -> String {
    let replaced = |c: char| match c.to_digit(16) {
        Some(digit) => char::from_digit((digit + 1) % 16, 16).unwrap().to_ascii_uppercase(),
        None => c,
    };
    sdp.split("\r\n")
        .map(|line| match line.split_once(' ') {
            Some((name, value)) if name.starts_with("a=fingerprint:") => format!("{name} {}", value.chars().map(replaced).collect::<String>()),
            _ => line.to_string(),
        })
        .collect::<Vec<_>>()
        .join("\r\n")
}

impl Terminal {
    fn new(options: Options) -> Result<Self, Failure> {
        let socket = UdpSocket::bind((options.address, 0))?;
        let own = socket.local_addr()?;
        let mut rtc = RtcConfig::new().set_rtp_mode(true).set_ice_lite(options.lite).clear_codecs().enable_pcmu(true, false).build(Instant::now());
        rtc.add_local_candidate(Candidate::host(own, "udp")?);
        let frames = tone::frames(options.tone);
        Ok(Terminal {
            options, rtc, socket, own, frames, pending: None, mid: None, ice: IceConnectionState::New, dtls: false, next_frame: None,
            ear: tone::Ear::default(), seen: HashMap::new(), packets_in: 0, packets_out: 0, first_in: 0, first_out: 0, log: vec![],
        })
    }

    fn local(&self, sdp: String) -> Value {
        json!({"sdp": if self.options.fault { wrong_fingerprint(&sdp) } else { sdp }})
    }

    fn obey(&mut self, order: &Value) -> Result<Value, Failure> {
        let sdp = order["sdp"].as_str().unwrap_or("");
        match order["do"].as_str().unwrap_or("") {
            "offer" => {
                let mut api = self.rtc.sdp_api();
                self.mid = Some(api.add_media(MediaKind::Audio, Direction::SendRecv, None, None, None));
                let (offer, pending) = api.apply().ok_or("nothing to offer")?;
                self.pending = Some(pending);
                Ok(self.local(offer.to_sdp_string()))
            }
            "restart" => {
                let mut api = self.rtc.sdp_api();
                api.ice_restart(true);
                let (offer, pending) = api.apply().ok_or("nothing to offer")?;
                self.pending = Some(pending);
                Ok(self.local(offer.to_sdp_string()))
            }
            "answer" => {
                let answer = self.rtc.sdp_api().accept_offer(SdpOffer::from_sdp_string(sdp)?)?;
                Ok(self.local(answer.to_sdp_string()))
            }
            "accept" => {
                let pending = self.pending.take().ok_or("no offer")?;
                self.rtc.sdp_api().accept_answer(pending, SdpAnswer::from_sdp_string(sdp)?)?;
                Ok(json!({}))
            }
            "report" => Ok(self.report()),
            other => Err(format!("unknown command {other}").into()),
        }
    }

    fn report(&self) -> Value {
        let connected = self.dtls && self.rtc.is_connected();
        json!({"state": if connected { "connected".to_string() } else { format!("{:?}", self.ice).to_lowercase() },
               "dtls": if self.dtls { "connected" } else { "new" }, "profile": "", "pair": "", "packets_in": self.packets_in,
               "packets_out": self.packets_out, "lost": self.seen.values().map(|r| r.highest - r.first + 1 - r.got).sum::<u64>(),
               "tones": self.ear.levels(), "blocks": self.ear.blocks(), "first_in_ns": self.first_in, "first_out_ns": self.first_out,
               "log": self.log})
    }

    fn happened(&mut self, event: Event) {
        match event {
            Event::IceConnectionStateChange(state) => self.ice = state,
            Event::Connected => {
                self.dtls = true;
                self.next_frame.get_or_insert_with(Instant::now);
            }
            Event::MediaAdded(media) => self.mid = Some(media.mid),
            Event::RtpPacket(packet) => {
                self.first_in = if self.first_in == 0 { now_ns() } else { self.first_in };
                self.packets_in += 1;
                let seq = *packet.seq_no;
                let run = self.seen.entry(*packet.header.ssrc).or_insert(Run { first: seq, highest: seq, got: 0 });
                run.first = run.first.min(seq);
                run.highest = run.highest.max(seq);
                run.got += 1;
                self.ear.hear(&packet.payload);
            }
            _ => {}
        }
    }

    /// Sends what str0m has to send. The result is when it must be asked again.
    fn flush(&mut self) -> Result<Instant, Failure> {
        loop {
            match self.rtc.poll_output()? {
                Output::Timeout(at) => return Ok(at),
                Output::Transmit(t) => drop(self.socket.send_to(&t.contents, t.destination)),
                Output::Event(event) => self.happened(event),
            }
        }
    }

    /// Phones declare no a=ssrc and send no MID, and str0m knows a stream only by these.
    fn expect(&mut self, packet: &[u8]) {
        let is_rtp = packet.len() >= 12 && packet[0] >> 6 == 2 && !(64..96).contains(&(packet[1] & 0x7f));
        if let (true, Some(mid)) = (is_rtp && self.dtls, self.mid) {
            let ssrc = u32::from_be_bytes(packet[8..12].try_into().unwrap());
            let mut api = self.rtc.direct_api();
            if api.stream_rx(&ssrc.into()).is_none() {
                api.expect_stream_rx(ssrc.into(), None, mid, None);
            }
        }
    }

    fn speak(&mut self, at: Instant) {
        let number = self.packets_out;
        let payload = self.frames[number as usize % self.frames.len()].clone();
        let mut api = self.rtc.direct_api();
        if let Some(stream) = self.mid.and_then(|mid| api.stream_tx_by_mid(mid, None)) {
            stream.write_rtp(RtpWrite::new(Pt::from(0), number.into(), number as u32 * tone::FRAME as u32, at, payload));
            self.packets_out += 1;
            self.first_out = if self.first_out == 0 { now_ns() } else { self.first_out };
        }
        self.next_frame = Some(at + FRAME);
    }

    fn receive(&mut self, until: Instant) -> Result<(), Failure> {
        let mut buffer = [0; 2048];
        self.socket.set_read_timeout(Some(until.saturating_duration_since(Instant::now()).clamp(Duration::from_micros(100), MARGIN)))?;
        let Ok((n, source)) = self.socket.recv_from(&mut buffer) else {
            return Ok(self.rtc.handle_input(Input::Timeout(Instant::now()))?);
        };
        self.expect(&buffer[..n]);
        if let Ok(contents) = buffer[..n].try_into() {
            let input = Receive { proto: Protocol::Udp, source, destination: self.own, contents };
            self.rtc.handle_input(Input::Receive(Instant::now(), input))?;
        }
        Ok(())
    }

    fn run(&mut self, orders: Receiver<Value>) -> Result<(), Failure> {
        loop {
            while let Ok(order) = orders.try_recv() {
                if order["do"] == "quit" {
                    return Ok(());
                }
                let reply = self.obey(&order).unwrap_or_else(|why| json!({"error": why.to_string()}));
                println!("{reply}");
                io::stdout().flush()?;
            }
            if let Some(at) = self.next_frame.filter(|at| *at <= Instant::now()) {
                self.speak(at);
            }
            let until = self.flush()?;
            self.receive(self.next_frame.map_or(until, |at| at.min(until)))?;
        }
    }
}

fn options() -> Result<Options, Failure> {
    let mut out = Options { tone: 440, address: "127.0.0.1".parse()?, fault: false, lite: false };
    for argument in std::env::args().skip(1) {
        match argument.split_once('=').unwrap_or((&argument, "")) {
            ("--tone", value) => out.tone = value.parse()?,
            ("--address", value) => out.address = value.parse()?,
            ("--fault", value) => out.fault = value == "fingerprint",
            ("--lite", _) => out.lite = true,
            _ => return Err(format!("unknown option {argument}").into()),
        }
    }
    Ok(out)
}

fn main() -> Result<(), Failure> {
    str0m::crypto::from_feature_flags().install_process_default();
    let mut terminal = Terminal::new(options()?)?;
    let (tell, orders) = channel();
    std::thread::spawn(move || {
        for line in io::stdin().lock().lines().map_while(Result::ok) {
            let _ = tell.send(serde_json::from_str(&line).unwrap_or(Value::Null));
        }
        let _ = tell.send(json!({"do": "quit"}));
    });
    println!("{}", json!({"ready": true}));
    terminal.run(orders)
}
