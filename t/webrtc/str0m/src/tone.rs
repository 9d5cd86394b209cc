// SPDX-License-Identifier: GPL-2.0-or-later

//! A tone as PCMU, and the level of tones in what is received (as t/webrtc/tone.py).
use std::f64::consts::PI;

use serde_json::{json, Value};

const RATE: usize = 8000;
pub const FRAME: usize = 160;
const AMPLITUDE: f64 = 12000.0;
const BLOCK: usize = 1600;
const TONES: [u32; 2] = [440, 1000];
const LAST: usize = 5;

fn linear(byte: u8) -> f64 {
    let byte = !byte;
    let value = ((((byte & 0x0f) as i32) << 3) + 0x84 << (byte >> 4 & 7)) - 0x84;
    f64::from(if byte & 0x80 != 0 { -value } else { value })
}

fn ulaw(sample: i32) -> u8 {
    let sign = if sample < 0 { 0x80 } else { 0 };
    let value = (sample.abs().min(32635) + 0x84) as u32;
    let exponent = 24 - value.leading_zeros();
    !(sign | (exponent << 4) as u8 | (value >> (exponent + 3) & 0x0f) as u8)
}

/// One second, in pieces of 20 ms.
pub fn frames(hertz: u32) -> Vec<Vec<u8>> {
    let at = |i: usize| ulaw((AMPLITUDE * (2.0 * PI * f64::from(hertz) * i as f64 / RATE as f64).sin()).round() as i32);
    (0..RATE / FRAME).map(|n| (n * FRAME..(n + 1) * FRAME).map(at).collect()).collect()
}

/// By Goertzel's algorithm.
fn level(block: &[f64], hertz: u32) -> f64 {
    let turn = 2.0 * (2.0 * PI * f64::from(hertz) / RATE as f64).cos();
    let (s1, s2) = block.iter().fold((0.0, 0.0), |(s1, s2), x| (x + turn * s1 - s2, s1));
    2.0 * (s1 * s1 + s2 * s2 - turn * s1 * s2).max(0.0).sqrt() / block.len() as f64
}

/// Takes payloads as they arrive; the levels are medians of the last blocks.
#[derive(Default)]
pub struct Ear {
    block: Vec<f64>,
    heard: Vec<[f64; TONES.len()]>,
}

impl Ear {
    pub fn hear(&mut self, payload: &[u8]) {
        self.block.extend(payload.iter().copied().map(linear));
        while self.block.len() >= BLOCK {
            let block: Vec<f64> = self.block.drain(..BLOCK).collect();
            self.heard.push(TONES.map(|hertz| level(&block, hertz)));
        }
    }

    pub fn blocks(&self) -> usize {
        self.heard.len()
    }

    pub fn levels(&self) -> Value {
        let last = &self.heard[self.heard.len().saturating_sub(LAST)..];
        let median = |i: usize| {
            let mut of: Vec<f64> = last.iter().map(|levels| levels[i]).collect();
            of.sort_by(f64::total_cmp);
            of.get(of.len() / 2).map_or(0, |level| level.round() as i64)
        };
        json!({TONES[0].to_string(): median(0), TONES[1].to_string(): median(1)})
    }
}
