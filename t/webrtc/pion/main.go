// SPDX-License-Identifier: GPL-2.0-or-later

// A WebRTC terminal by pion. It speaks the protocol of t/webrtc/peer.py on stdin and stdout.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/pion/dtls/v3"
	"github.com/pion/ice/v4"
	"github.com/pion/rtp"
	"github.com/pion/webrtc/v4"
	"golang.org/x/sys/unix"
)

type options struct {
	tone    int
	address string
	fault   string
	role    string
	profile string
	lite    bool
}

var profiles = map[string]dtls.SRTPProtectionProfile{
	"SRTP_AEAD_AES_256_GCM":       dtls.SRTP_AEAD_AES_256_GCM,
	"SRTP_AEAD_AES_128_GCM":       dtls.SRTP_AEAD_AES_128_GCM,
	"SRTP_AES128_CM_HMAC_SHA1_80": dtls.SRTP_AES128_CM_HMAC_SHA1_80,
	"SRTP_AES128_CM_HMAC_SHA1_32": dtls.SRTP_AES128_CM_HMAC_SHA1_32,
}

type report struct {
	State    string         `json:"state"`
	DTLS     string         `json:"dtls"`
	Profile  string         `json:"profile"`
	Pair     string         `json:"pair"`
	In       int            `json:"packets_in"`
	Out      int            `json:"packets_out"`
	Lost     int            `json:"lost"`
	Tones    map[string]int `json:"tones"`
	Blocks   int            `json:"blocks"`
	FirstIn  int64          `json:"first_in_ns"`
	FirstOut int64          `json:"first_out_ns"`
	Log      []string       `json:"log"`
}

type terminal struct {
	options
	pc    *webrtc.PeerConnection
	track *webrtc.TrackLocalStaticRTP

	lock   sync.Mutex
	report report
	ear    ear
	seen   map[uint32]*run
}

// run is what was received of one SSRC.
type run struct {
	first, highest uint16
	wraps, got     int
}

func now() int64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		return 0
	}
	return t.Nano()
}

func newTerminal(o options) (*terminal, error) {
	var s webrtc.SettingEngine
	s.SetICEMulticastDNSMode(ice.MulticastDNSModeDisabled)
	s.SetIPFilter(func(ip net.IP) bool { return ip.Equal(net.ParseIP(o.address)) })
	s.SetNetworkTypes([]webrtc.NetworkType{webrtc.NetworkTypeUDP4, webrtc.NetworkTypeUDP6})
	s.SetLite(o.lite)
	// Phones declare no a=ssrc.
	s.SetHandleUndeclaredSSRCWithoutAnswer(true)
	if o.profile != "" {
		s.SetSRTPProtectionProfiles(profiles[o.profile])
	}
	roles := map[string]webrtc.DTLSRole{"active": webrtc.DTLSRoleClient, "passive": webrtc.DTLSRoleServer}
	if role, ok := roles[o.role]; ok {
		if err := s.SetAnsweringDTLSRole(role); err != nil {
			return nil, err
		}
	}
	var m webrtc.MediaEngine
	pcmu := webrtc.RTPCodecCapability{MimeType: webrtc.MimeTypePCMU, ClockRate: rate}
	if err := m.RegisterCodec(webrtc.RTPCodecParameters{RTPCodecCapability: pcmu, PayloadType: 0}, webrtc.RTPCodecTypeAudio); err != nil {
		return nil, err
	}
	pc, err := webrtc.NewAPI(webrtc.WithSettingEngine(s), webrtc.WithMediaEngine(&m)).NewPeerConnection(webrtc.Configuration{})
	if err != nil {
		return nil, err
	}
	track, err := webrtc.NewTrackLocalStaticRTP(pcmu, "audio", "tone")
	if err != nil {
		return nil, err
	}
	t := &terminal{options: o, pc: pc, track: track, seen: map[uint32]*run{}}
	pc.OnTrack(func(track *webrtc.TrackRemote, _ *webrtc.RTPReceiver) {
		fmt.Fprintln(os.Stderr, "track of SSRC", track.SSRC())
		t.hear(track)
	})
	pc.OnConnectionStateChange(func(state webrtc.PeerConnectionState) {
		if state == webrtc.PeerConnectionStateConnected {
			go t.speak()
		}
	})
	return t, nil
}

func (t *terminal) hear(track *webrtc.TrackRemote) {
	for {
		p, _, err := track.ReadRTP()
		if err != nil {
			fmt.Fprintln(os.Stderr, "track:", err)
			return
		}
		at := now()
		t.lock.Lock()
		if t.report.FirstIn == 0 {
			t.report.FirstIn = at
		}
		t.report.In++
		r := t.seen[p.SSRC]
		if r == nil {
			r = &run{first: p.SequenceNumber, highest: p.SequenceNumber}
			t.seen[p.SSRC] = r
		}
		r.got++
		if ahead := int16(p.SequenceNumber - r.highest); ahead > 0 {
			if p.SequenceNumber < r.highest {
				r.wraps++
			}
			r.highest = p.SequenceNumber
		}
		t.ear.hear(p.Payload)
		t.lock.Unlock()
	}
}

// speak is called once per connection; a second connection of the same call goes on with the first one's packets.
func (t *terminal) speak() {
	t.lock.Lock()
	started := t.report.FirstOut != 0
	if !started {
		t.report.FirstOut = now()
	}
	t.lock.Unlock()
	if started {
		return
	}
	frames, start := frames(t.tone), time.Now()
	for n := 0; ; n++ {
		p := &rtp.Packet{Header: rtp.Header{Version: 2, SequenceNumber: uint16(n), Timestamp: uint32(n * frame)}, Payload: frames[n%len(frames)]}
		if t.track.WriteRTP(p) == nil {
			t.lock.Lock()
			t.report.Out++
			t.lock.Unlock()
		}
		time.Sleep(time.Until(start.Add(time.Duration(n+1) * 20 * time.Millisecond)))
	}
}

func (t *terminal) local(description webrtc.SessionDescription) (string, error) {
	done := webrtc.GatheringCompletePromise(t.pc)
	if err := t.pc.SetLocalDescription(description); err != nil {
		return "", err
	}
	<-done
	sdp := t.pc.LocalDescription().SDP
	if t.fault == "fingerprint" {
		sdp = wrongFingerprint(sdp)
	}
	return sdp, nil
}

func wrongFingerprint(sdp string) string {
	lines := strings.Split(sdp, "\r\n")
	for i, line := range lines {
		if name, value, ok := strings.Cut(line, " "); ok && strings.HasPrefix(name, "a=fingerprint:") {
			lines[i] = name + " " + strings.Map(func(r rune) rune {
				if at := strings.IndexRune("0123456789ABCDEF", r); at >= 0 {
					return rune("123456789ABCDEF0"[at])
				}
				return r
			}, strings.ToUpper(value))
		}
	}
	return strings.Join(lines, "\r\n")
}

func (t *terminal) offer(restart bool) (string, error) {
	if len(t.pc.GetSenders()) == 0 {
		if _, err := t.pc.AddTrack(t.track); err != nil {
			return "", err
		}
	}
	offer, err := t.pc.CreateOffer(&webrtc.OfferOptions{ICERestart: restart})
	if err != nil {
		return "", err
	}
	return t.local(offer)
}

func (t *terminal) answer(sdp string) (string, error) {
	if err := t.pc.SetRemoteDescription(webrtc.SessionDescription{Type: webrtc.SDPTypeOffer, SDP: sdp}); err != nil {
		return "", err
	}
	if len(t.pc.GetSenders()) == 0 {
		if _, err := t.pc.AddTrack(t.track); err != nil {
			return "", err
		}
	}
	answer, err := t.pc.CreateAnswer(nil)
	if err != nil {
		return "", err
	}
	return t.local(answer)
}

func (t *terminal) state() report {
	t.lock.Lock()
	defer t.lock.Unlock()
	r := t.report
	r.State, r.Profile = t.pc.ConnectionState().String(), t.profile
	r.Tones, r.Blocks, r.Log = t.ear.levels(), t.ear.blocks(), []string{}
	for _, one := range t.seen {
		r.Lost += one.wraps<<16 + int(one.highest) - int(one.first) + 1 - one.got
	}
	if senders := t.pc.GetSenders(); len(senders) > 0 && senders[0].Transport() != nil {
		d := senders[0].Transport()
		r.DTLS = d.State().String()
		if pair, err := d.ICETransport().GetSelectedCandidatePair(); err == nil && pair != nil {
			r.Pair = fmt.Sprintf("%s:%d %s:%d", pair.Local.Address, pair.Local.Port, pair.Remote.Address, pair.Remote.Port)
		}
	}
	return r
}

func (t *terminal) obey(do, sdp string) (any, error) {
	var err error
	switch do {
	case "offer", "restart":
		sdp, err = t.offer(do == "restart")
		return map[string]string{"sdp": sdp}, err
	case "answer":
		sdp, err = t.answer(sdp)
		return map[string]string{"sdp": sdp}, err
	case "accept":
		return struct{}{}, t.pc.SetRemoteDescription(webrtc.SessionDescription{Type: webrtc.SDPTypeAnswer, SDP: sdp})
	case "report":
		return t.state(), nil
	}
	return nil, fmt.Errorf("unknown command %s", do)
}

func main() {
	var o options
	flag.IntVar(&o.tone, "tone", 440, "Hz")
	flag.StringVar(&o.address, "address", "127.0.0.1", "the only one to use")
	flag.StringVar(&o.fault, "fault", "", "fingerprint")
	flag.StringVar(&o.role, "role", "", "role of DTLS in answers: active, passive")
	flag.StringVar(&o.profile, "profile", "", "the only SRTP profile to offer")
	flag.BoolVar(&o.lite, "lite", false, "ICE lite")
	flag.Parse()
	t, err := newTerminal(o)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	out, in := json.NewEncoder(os.Stdout), bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<20)
	_ = out.Encode(map[string]bool{"ready": true})
	for in.Scan() {
		var order struct{ Do, SDP string }
		if json.Unmarshal(in.Bytes(), &order) != nil || order.Do == "quit" {
			return
		}
		reply, err := t.obey(order.Do, order.SDP)
		if err != nil {
			reply = map[string]string{"error": err.Error()}
		}
		_ = out.Encode(reply)
	}
}
