# SPDX-License-Identifier: GPL-2.0-or-later
"""Every row of xcipher-ng(7): flags listed as ignored, warned of or refused behave so, and each
implemented row has tests elsewhere."""
import re

import compat
from compat import compat as test
from compat import compat_each, manual
from text import audio, sdp

PAGE = {section: list(manual(section)) for section in ("COMMANDS", "FLAGS", "KEYS")}
NUMBERS = {"ptime", "ptime-reverse", "DTMF-delay", "delay-buffer", "volume", "trigger-end-time", "trigger-end-digits"}


def rows(section, status):
    return [(name, words) for name, found, words in PAGE[section] if found == status]


def flag(name):
    return name + "PCMA" if name.endswith("-") else name


def offer(relay, **keys):
    return relay.call().offer(sdp(audio()), **keys)


@compat_each("manual: ignored", "xcipher-ng(7) FLAGS", rows("FLAGS", "Ignored"))
def test_ignored_flag(relay, name, _words):
    plain, said = offer(relay), offer(relay, flags=[flag(name)])
    assert not said.warning and said.sdp.kinds == plain.sdp.kinds
    assert [line for line in said.sdp.audio.lines if "rtcp:" not in line][1:] == [line for line in plain.sdp.audio.lines if "rtcp:" not in line][1:]
    assert not offer(relay, rtpp_flags=flag(name)).warning


@compat_each("manual: warned", "xcipher-ng(7) FLAGS", rows("FLAGS", "Warned"))
def test_warned_flag(relay, name, words):
    for said in (offer(relay, flags=[flag(name)]), offer(relay, rtpp_flags=flag(name))):
        assert words.rstrip(".").lower() in said.warning.lower() and "unknown" not in said.warning, said.warning


@compat_each("manual: ignored", "xcipher-ng(7) KEYS", rows("KEYS", "Ignored"))
def test_ignored_key(relay, name, _words):
    assert not offer(relay, **{name.replace("-", "_"): "sip_request" if name == "sip-message-type" else ""}).warning


@compat_each("manual: warned", "xcipher-ng(7) KEYS", rows("KEYS", "Warned"))
def test_warned_key(relay, name, words):
    said = offer(relay, **{name.replace("-", "_"): 20 if name in NUMBERS else "PCMA"})
    assert words.rstrip(".").lower() in said.warning.lower() and "unknown" not in said.warning, said.warning


@compat_each("manual: refused", "xcipher-ng(7) COMMANDS", rows("COMMANDS", "Refused"))
def test_refused_command(relay, name, words):
    relay.request(name, words, call_id="a", from_tag="b")


@test("manual: unknown", "xcipher-ng(7) DESCRIPTION")
def test_unknown_words_are_named(relay):
    assert "unknown flag: strict-sauce" in offer(relay, flags=["strict-sauce"]).warning
    assert "replase" in offer(relay, replase=["origin"]).warning
    assert "strict-sauce" in offer(relay, rtpp_flags="RTP/AVP strict-sauce").warning


@compat_each("manual: unknown", "xcipher-ng(7) DESCRIPTION", ["strict source", "strict_source", "strict-source"])
def test_spellings(relay, name):
    assert not offer(relay, flags=[name]).warning


def covered():
    """Names of rows that appear in the tests' sources after "xcipher-ng(7), "."""
    names = set()
    for case in compat.CASES:
        for part in re.findall(r"xcipher-ng\(7\), ([^;]*)", case.source):
            names.update(name.partition(":")[0].strip() for name in part.split(", "))
    return names


@test("manual: done", "t/compat/README.md")
def test_every_difference_has_a_test(_relay):
    with open(compat.page("xcipher-ng.7"), encoding="utf-8") as f:
        body = f.read().split(".Sh DIFFERENCES FROM RTPENGINE\n")[1].split("\n.Sh ")[0]
    names = re.findall(r"^\.It Sy (.*)$", body, re.M)
    missing = [name for name in names if not any(f"DIFFERENCES FROM RTPENGINE: {name}" in case.source for case in compat.CASES)]
    assert names and not missing, f"no test names {', '.join(missing)}"


@compat_each("manual: done", "t/compat/README.md", ["COMMANDS", "FLAGS", "KEYS"])
def test_every_row_that_is_done_has_a_test(_relay, section):
    missing = [name for name, _ in rows(section, "Done") if name not in covered()]
    assert not missing, f"no test names {', '.join(missing)}"
