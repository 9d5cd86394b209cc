// SPDX-License-Identifier: GPL-2.0-or-later

package main

import (
	"math"
	"math/bits"
	"sort"
	"strconv"
)

const (
	rate      = 8000
	frame     = 160 // samples of 20 ms
	amplitude = 12000
	block     = 1600 // whole periods of both tones
)

var tones = []int{440, 1000}

// linear converts G.711 mu-law to 16 bits.
func linear(b byte) int {
	b = ^b
	v := (int(b&0x0f)<<3+0x84)<<(b>>4&7) - 0x84
	if b&0x80 != 0 {
		return -v
	}
	return v
}

func ulaw(s int) byte {
	sign := 0
	if s < 0 {
		sign, s = 0x80, -s
	}
	v := min(s, 32635) + 0x84
	exponent := bits.Len(uint(v)) - 8
	return ^byte(sign | exponent<<4 | v>>(exponent+3)&0x0f)
}

// frames returns the payloads of one second of the tone.
func frames(hertz int) [][]byte {
	var out [][]byte
	for at := 0; at < rate; at += frame {
		p := make([]byte, frame)
		for i := range p {
			p[i] = ulaw(int(math.Round(amplitude * math.Sin(2*math.Pi*float64(hertz*(at+i))/rate))))
		}
		out = append(out, p)
	}
	return out
}

// ear measures tones by Goertzel's algorithm.
type ear struct {
	samples []float64
	heard   map[int][]float64
}

func (e *ear) hear(payload []byte) {
	for _, b := range payload {
		e.samples = append(e.samples, float64(linear(b)))
	}
	for len(e.samples) >= block {
		if e.heard == nil {
			e.heard = map[int][]float64{}
		}
		for _, t := range tones {
			e.heard[t] = append(e.heard[t], level(e.samples[:block], t))
		}
		e.samples = e.samples[block:]
	}
}

func level(samples []float64, hertz int) float64 {
	turn := 2 * math.Cos(2*math.Pi*float64(hertz)/rate)
	var s1, s2 float64
	for _, x := range samples {
		s1, s2 = x+turn*s1-s2, s1
	}
	return 2 * math.Sqrt(math.Max(s1*s1+s2*s2-turn*s1*s2, 0)) / float64(len(samples))
}

// levels are medians of the last blocks.
func (e *ear) levels() map[string]int {
	out := map[string]int{}
	for t, heard := range e.heard {
		last := append([]float64(nil), heard[max(0, len(heard)-5):]...)
		sort.Float64s(last)
		out[strconv.Itoa(t)] = int(math.Round(last[len(last)/2]))
	}
	return out
}

func (e *ear) blocks() int {
	return len(e.heard[tones[0]])
}
