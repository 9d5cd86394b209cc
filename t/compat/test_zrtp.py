# SPDX-License-Identifier: GPL-2.0-or-later
"""a=zrtp-hash in offers and answers: it passes, is removed, or is the relay's own."""
from compat import compat, compat_each
from text import audio, sdp

B = "10.200.2.2"
HASH_A, HASH_B = ("a=zrtp-hash:1.10 " + pair * 32 for pair in ("aa", "bb"))


@compat("transport", "xcipher-ng(7), ZRTP; RFC 6189 section 8")
def test_both_hashes_pass_between_plain_legs(relay):
    call = relay.call()
    assert HASH_A in call.offer(sdp(audio(HASH_A)), ZRTP="passthrough").sdp.text
    assert HASH_B in call.answer(sdp(audio(HASH_B), ip=B)).sdp.text


@compat_each("transport", "xcipher-ng(7), ZRTP", [("off",), ("no",), ("disable",)])
def test_no_hash_passes(relay, word):
    call = relay.call()
    assert "zrtp-hash" not in call.offer(sdp(audio(HASH_A)), ZRTP=word).sdp.text


@compat_each("transport", "xcipher-ng(7), ZRTP", [("terminate",), ("require",)])
def test_the_receiver_gets_a_hash_of_the_relay(relay, word):
    call = relay.call()
    told = call.offer(sdp(audio(HASH_A)), ZRTP=word).sdp.text
    assert "a=zrtp-hash:1.10 " in told and HASH_A not in told
    told = call.answer(sdp(audio(HASH_B), ip=B), ZRTP=word).sdp.text
    assert "a=zrtp-hash:1.10 " in told and HASH_B not in told


@compat_each("errors", "xcipher-ng(7), verify SAS, unverify SAS", [("verify SAS",), ("unverify SAS",)])
def test_a_call_without_zrtp_has_no_sas(relay, command):
    call = relay.call()
    call.offer(sdp(audio(HASH_A)), ZRTP="passthrough")
    call.answer(sdp(audio(HASH_B), ip=B))
    call.request(command, "SAS")
    call.request(command, "SAS", from_tag="a")
