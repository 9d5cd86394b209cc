# SPDX-License-Identifier: GPL-2.0-or-later
"""Emergency calls are recorded at the border, decrypted, also after a diversion. Test calls are not, and a recorder that fails stops no call."""
import glob
import os

from baresip import wait_for
from test_ng911 import TERMINALS, network, prepare
from test_ng911_border_web import call_info
from test_record import Folder, packets

PREPARE = prepare


def payloads(path, source):
    """Of the RTP packets from this address."""
    return {p[12:] for _, (address, _), _, p in packets(path) if address == source and p[1] & 0x7f == 0}


def recorded(folder):
    return sorted(glob.glob(os.path.join(folder, "*.pcap")))


def text_of(path):
    """The text file of a recording."""
    with open(path.replace(".pcap", ".txt"), encoding="utf-8") as f:
        return f.read()


def play(n, taker, said):
    """A call in which each party sends its own audio. Returns the INVITE that the taker got."""
    import ng911
    ng911.PACKETS = 5
    dialog, invite = ng911.connected(n, ng911.Story(False), ng911.HERE, taker)
    for terminal, payload in ((dialog.media, said[0]), (taker.media[-1], said[1])):
        for _ in range(5):
            terminal.say(payload)
    wait_for("the words", lambda: said[0] in taker.media[-1].heard and said[1] in dialog.media.heard)
    ng911.hang_up(n, ng911.Story(False), dialog, taker)
    return invite


def test_both_directions_are_recorded(net):
    with Folder() as folder, network(net, tests=True, border=[f"--recording-dir={folder.path}"], esrp={"XC_RECORD": 1}) as n:
        import esinet
        import ng911
        one, two = n.takers
        near = n.lost.psap_at(*ng911.HERE)
        n.psap.rpc("htable.sets", "takers", near, one.uri())
        n.psap.rpc("htable.sets", "takers", "default", two.uri())
        words = os.urandom(160), os.urandom(160)
        invite = play(n, one, words)
        wait_for("the recording", lambda: recorded(folder.path))
        (first,) = recorded(folder.path)
        ids = [call_info(invite, f"emergency-{kind}") for kind in ("CallId", "IncidentId")]
        wait_for("its text", lambda: "packets:" in text_of(first))
        assert f"\nmetadata: from:caller|to:service|call:{ids[0]}|incident:{ids[1]}\n" in text_of(first), (ids, text_of(first))
        wait_for("both voices", lambda: words[0] in payloads(first, esinet.HOST["caller"]) and words[1] in payloads(first, esinet.HOST["taker1"]))

        # Diverted: the call begins again at xcipherd, and so does its recording.
        one.busy = True
        words = os.urandom(160), os.urandom(160)
        invite = play(n, two, words)
        assert "cause%3D486" in invite.get("History-Info"), invite.headers

        def diverted():
            return [p for p in recorded(folder.path) if words[0] in payloads(p, esinet.HOST["caller"]) and words[1] in payloads(p, esinet.HOST["taker2"])]
        wait_for("the recording of the diverted call", diverted)

        before = recorded(folder.path)
        test = n.caller.call(*ng911.HERE, "urn:service:test.sos")
        assert test.answered() == 200
        ng911.echoed(test.media)
        test.end()
        assert recorded(folder.path) == before, "a test call was recorded"


def test_a_call_needs_no_recorder(net):
    with network(net, esrp={"XC_RECORD": 1}) as n:
        n.psap.rpc("htable.sets", "takers", "*", n.takers[0].uri())
        play(n, n.takers[0], (os.urandom(160), os.urandom(160)))
        assert "Recording is off" in n.border.text(), n.border.text()[-2000:]


test_both_directions_are_recorded.terminals = test_a_call_needs_no_recorder.terminals = TERMINALS
