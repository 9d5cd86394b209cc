# SPDX-License-Identifier: GPL-2.0-or-later
"""A DTLS certificate from a file: what is refused, its reload, and what it makes possible: another daemon goes on where one was killed."""
import contextlib
import os
import re
import shutil
import subprocess
import tempfile

import dtls
import redisrig
import relay
from baresip import wait_for
from relay import text_of
from run import Skip, cases

A, B = "10.200.1.2", "10.200.2.2"


def make(folder, name, *how):
    """The path of a certificate; its key and a file with both lie in the same folder."""
    path = os.path.join(folder, name)
    subprocess.run(["openssl", "req", "-x509", *(how or ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256")), "-nodes", "-subj", "/CN=t",
                    "-keyout", path + ".key", "-out", path], check=True, capture_output=True)
    with open(path + ".both", "w", encoding="ascii") as out:
        for part in (path + ".key", path):
            with open(part, encoding="ascii") as f:
                out.write(f.read())
    os.chmod(path + ".both", 0o640)
    return path


def fingerprint(path, digest="sha256"):
    text = subprocess.run(["openssl", "x509", "-in", path, "-noout", "-fingerprint", f"-{digest}"], check=True, capture_output=True, text=True)
    return text.stdout.strip().partition("=")[2]


def seen(terminal):
    """The fingerprint of the daemon's certificate in the terminal's handshake, as OpenSSL's program prints it."""
    pem = re.search("-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----\n", text_of(terminal.log), re.S)
    with tempfile.NamedTemporaryFile("w", encoding="ascii") as f:
        f.write(pem[0])
        f.flush()
        return fingerprint(f.name)


def reload(daemon, path, cert):
    shutil.copy(cert + ".both", path + ".new")
    os.chmod(path + ".new", 0o640)
    os.replace(path + ".new", path)
    assert daemon.client.call("reload")["result"] == "ok"


def handshake(call, terminal, cert):
    """A handshake of the terminal with this certificate of the daemon, and media under its keys."""
    if terminal.process:
        terminal.net.stop(terminal.process)
    terminal.handshake()
    terminal.keyed()
    call.exchange()
    assert seen(terminal) == fingerprint(cert) and terminal.bad == 0


@contextlib.contextmanager
def terminals(net, setup="active", place="callee", address=B):
    a, b = dtls.Plain(net, "caller", A), dtls.Dtls(net, place, address, setup)
    yield a, b
    a.close()
    b.close()


def start(net, *options, addresses=("10.200.2.1",)):
    return relay.Xcipherd(net, "--engine=serial", "--workers=1", *options, addresses=addresses).wait_ready()


def kill(daemon):
    daemon.process.kill()
    daemon.process.wait()
    daemon.client.close()


def saved(daemon):
    def is_written():
        redis = daemon.statistics()["redis"]
        return redis["mode"] == "active" and redis["waiting"] == 0 and redis["written"]
    wait_for("the call is saved", is_written)


def test_what_is_refused(net):
    with tempfile.TemporaryDirectory() as folder:
        good, other = make(folder, "good"), make(folder, "other")
        weak = make(folder, "weak", "-newkey", "rsa:1024")
        open_key = good + ".open"
        with open(good + ".key", "rb") as f, open(open_key, "wb") as out:
            out.write(f.read())
        os.chmod(open_key, 0o644)
        for options, words in (
                ([f"--dtls-key={good}.key"], "--dtls-key needs --dtls-cert"),
                ([f"--dtls-cert={good}.both", "--keying-threads=0"], "needs --keying-threads"),
                (["--dtls-cert=/nowhere"], "--dtls-cert=/nowhere cannot be read: No such file"),
                ([f"--dtls-cert={good}", "--dtls-key=/nowhere"], "--dtls-key=/nowhere cannot be read: No such file"),
                (["--dtls-cert=/nowhere", f"--dtls-key={good}.key"], "--dtls-cert=/nowhere cannot be read: No such file"),
                ([f"--dtls-cert={good}", f"--dtls-key={open_key}"], f"--dtls-key={open_key} has mode 0644"),
                ([f"--dtls-cert={good}", f"--dtls-key={good}"], f"--dtls-key={good} has mode 0644"),
                ([f"--dtls-cert={good}", f"--dtls-key={other}.key"], f"--dtls-key={other}.key has a key that does not fit"),
                ([f"--dtls-cert={good}.key"], f"--dtls-cert={good}.key has no certificate"),
                ([f"--dtls-cert={good}", f"--dtls-key={weak}.key"], f"--dtls-key={weak}.key has a key that is too weak")):
            try:
                start(net, *options)
                raise AssertionError(f"started with {options}")
            except RuntimeError as e:
                assert words in str(e), e


@cases(("P-256",), ("rsa:2048",))
def test_its_fingerprint_is_in_sdp_and_is_reloaded(net, kind):
    """A running call keeps its association; the next one gets the new certificate. A file with a mistake changes nothing."""
    with tempfile.TemporaryDirectory() as folder, terminals(net) as (a, b):
        how = ("-newkey", kind) if ":" in kind else ()
        first, second = make(folder, "first", *how), make(folder, "second", *how)
        path = os.path.join(folder, "in-use")
        os.link(first + ".both", path)
        daemon = start(net, f"--dtls-cert={path}")
        call = dtls.Call(daemon, a, b).begin()
        assert f"a=fingerprint:sha-256 {fingerprint(first)}" in call.offered, call.offered
        assert f"a=fingerprint:sha-384 {fingerprint(first, 'sha384')}" in dtls.Call(daemon, a, b).offer(DTLS_fingerprint="sha-384").offered
        b.believe(call.offered)
        call.exchange()
        with open(path + ".new", "w", encoding="ascii") as f:
            f.write("nothing\n")
        os.chmod(path + ".new", 0o640)
        os.replace(path + ".new", path)
        reply = daemon.client.call("reload")
        assert reply["result"] == "error" and "has no" in reply["error-reason"] and path in reply["error-reason"], reply
        assert fingerprint(first) in dtls.Call(daemon, a, b).offer().offered
        os.replace(second + ".both", path)
        assert daemon.client.call("reload")["result"] == "ok"
        b.believe(call.offered)
        call.exchange()
        assert fingerprint(second) in dtls.Call(daemon, a, b).offer().offered
        assert daemon.text().count("DTLS handshake completed") == 1
        assert daemon.stop() == 0


@cases(("active",), ("passive",))
def test_reloaded_between_offer_and_answer(net, setup):
    """The association has the certificate that its offer named. The next offer names the new one, and begins another association."""
    with tempfile.TemporaryDirectory() as folder, terminals(net, setup) as (a, b):
        certs = [make(folder, str(i)) for i in range(3)]
        path = os.path.join(folder, "in-use")
        shutil.copy(certs[0] + ".both", path)
        daemon = start(net, f"--dtls-cert={path}")
        call = dtls.Call(daemon, a, b).offer()
        reload(daemon, path, certs[1])
        handshake(call.answer(), b, certs[0])
        call.offer(to_tag="b")
        assert fingerprint(certs[1]) in call.offered, call.offered
        handshake(call.answer(), b, certs[1])
        call.offer(to_tag="b")  # names the certificate of the association: there is no new one
        reload(daemon, path, certs[2])
        call.answer()
        call.exchange()
        call.offer(to_tag="b")
        assert fingerprint(certs[2]) in call.offered, call.offered
        handshake(call.answer(), b, certs[2])
        assert daemon.text().count("DTLS handshake completed") == 3 and "no media" not in daemon.text()
        assert daemon.stop() == 0


@cases(("active",), ("passive",))
def test_reloaded_while_two_terminals_ring(net, setup):
    """Both answer one offer, and get the certificate that it named."""
    with tempfile.TemporaryDirectory() as folder, terminals(net, setup) as (a, b):
        first, second = make(folder, "first"), make(folder, "second")
        path = os.path.join(folder, "in-use")
        shutil.copy(first + ".both", path)
        daemon = start(net, f"--dtls-cert={path}")
        call = dtls.Call(daemon, a, b).offer()
        reload(daemon, path, second)
        handshake(call.answer(), b, first)
        call.b = dtls.Dtls(net, "callee", B, setup)
        call.b.believe(call.offered)
        a.believe(call.ask("answer", sdp=call.b.sdp(), from_tag="a", to_tag="c"))
        handshake(call, call.b, first)
        call.b.close()
        assert daemon.text().count("DTLS handshake completed") == 2 and "no media" not in daemon.text()
        assert daemon.stop() == 0


@cases(("active",), ("passive",))
def test_killed_in_mid_handshake(net, setup):
    """The next daemon has the same certificate, so the terminal's handshake comes to its end, without a word of signalling."""
    if not redisrig.have():
        raise Skip("no redis-server here")
    with tempfile.TemporaryDirectory() as folder, terminals(net, setup) as (a, b):
        redis = redisrig.Redis(net)
        options = [f"--dtls-cert={make(folder, 'cert')}.both", *redis.daemon_options()]
        daemon = start(net, *options)
        call = dtls.Call(daemon, a, b)
        call.offer().answer()
        b.deaf = True  # the program does not receive what the daemon answers
        if setup == "active":
            b.handshake()
        wait_for("the handshake began", lambda: b.count["dtls"])
        saved(daemon)
        kill(daemon)
        daemon = call.daemon = start(net, *options)
        b.deaf = False
        if setup == "passive":
            b.handshake()
        b.keyed()
        call.exchange()
        assert b.bad == 0 and daemon.text().count("DTLS handshake completed") == 1
        assert daemon.stop() == 0
        redis.stop()


def test_the_standby_takes_over(net):
    """The terminal notices nothing: no DTLS packet comes to it. After a re-INVITE the association is still the same."""
    if not redisrig.have():
        raise Skip("no redis-server here")
    with tempfile.TemporaryDirectory() as folder, terminals(net, place="caller", address=A) as (a, b):
        redis = redisrig.Redis(net, addr="0.0.0.0")
        there = redisrig.Elsewhere(net)
        options = [f"--dtls-cert={make(folder, 'cert')}.both", f"--redis-key-file={redis.key_file}"]
        first = start(net, *options, "--redis=127.0.0.1:6379", addresses=("10.200.1.1",))
        second = start(there, *options, "--redis=10.200.9.1:6379", "--standby=yes", addresses=("10.200.1.1",))
        call = dtls.Call(first, a, b).begin()
        call.exchange()
        saved(first)
        wait_for("the standby follows", lambda: second.statistics()["redis"]["followed"] == 1)
        kill(first)
        there.take_addresses()
        before = b.count["dtls"]
        assert second.client.call("active")["result"] == "ok"
        wait_for("the call was restored", lambda: second.statistics()["redis"]["restored"] == 1)
        call.daemon = second
        call.exchange()
        b.believe(call.ask("offer", sdp=a.sdp(), from_tag="a", to_tag="b", **call.flags))
        a.believe(call.ask("answer", sdp=b.sdp(), from_tag="a", to_tag="b"))
        call.exchange()
        assert b.bad == 0 and b.count["dtls"] == before and "DTLS handshake" not in second.text()
        assert second.stop() == 0
        redis.stop()
