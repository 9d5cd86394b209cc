#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A WebRTC terminal by aiortc with a microphone and a camera, for test_bundle.py. Arguments: folder of its modules, its address, bundle policy.
Commands on stdin, one JSON line each, and one line in reply: {"do": "offer"}, {"do": "answer", "sdp": ...}, {"do": "accept", "sdp": ...},
{"do": "report"}."""
import asyncio
import json
import sys

FOLDER, ADDRESS, POLICY = sys.argv[1:4]
sys.path.insert(0, FOLDER)

import aioice.ice  # noqa: E402
import aiortc  # noqa: E402
import aiortc.rtcrtpreceiver  # noqa: E402

heard = {"audio": {}, "video": {}}
mids = {"audio": set(), "video": set()}  # of the header extension (RFC 9143 14)


def watch_packets():
    """Packets are counted by SSRC where aiortc has just decrypted them, under the kind of the m-line that it gives them to."""
    take = aiortc.rtcrtpreceiver.RTCRtpReceiver._handle_rtp_packet

    async def taken(receiver, packet, arrival_time_ms):
        count = heard[receiver.track.kind]
        count[packet.ssrc] = count.get(packet.ssrc, 0) + 1
        if packet.extensions.mid:
            mids[receiver.track.kind].add(packet.extensions.mid)
        await take(receiver, packet, arrival_time_ms)
    aiortc.rtcrtpreceiver.RTCRtpReceiver._handle_rtp_packet = taken


def add_tracks(pc):
    pc.addTrack(aiortc.mediastreams.AudioStreamTrack())
    pc.addTrack(aiortc.mediastreams.VideoStreamTrack())


async def obey(pc, command):
    kind = command["do"]
    if kind == "offer":
        add_tracks(pc)
        await pc.setLocalDescription(await pc.createOffer())
        return {"sdp": pc.localDescription.sdp}
    if kind == "answer":
        await pc.setRemoteDescription(aiortc.RTCSessionDescription(command["sdp"], "offer"))
        add_tracks(pc)
        await pc.setLocalDescription(await pc.createAnswer())
        return {"sdp": pc.localDescription.sdp}
    if kind == "accept":
        await pc.setRemoteDescription(aiortc.RTCSessionDescription(command["sdp"], "answer"))
        return {}
    sent, reports = {}, {}
    for t in pc.getTransceivers():
        for s in (await t.sender.getStats()).values():
            if s.type == "outbound-rtp":
                sent[s.kind] = s.packetsSent
            if s.type == "remote-inbound-rtp":
                reports[s.kind] = True
    transports = {id(t.receiver.transport) for t in pc.getTransceivers()}
    own = {t.kind: t.mid for t in pc.getTransceivers()}
    return {"heard": heard, "mids": {k: sorted(v) for k, v in mids.items()}, "own_mids": own, "sent": sent, "reports": reports, "state": pc.connectionState, "transports": len(transports)}


async def main():
    aioice.ice.get_host_addresses = lambda use_ipv4, use_ipv6: [ADDRESS]
    watch_packets()
    pc = aiortc.RTCPeerConnection(aiortc.RTCConfiguration(iceServers=[], bundlePolicy=aiortc.RTCBundlePolicy(POLICY)))
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        try:
            print(json.dumps(await obey(pc, json.loads(line))), flush=True)
        except Exception as e:  # the test is told
            print(json.dumps({"failed": repr(e)}), flush=True)


asyncio.run(main())
