#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Reads one MIKEY message (hex, first argument) with GStreamer's libgstsdp, and prints what it found as JSON. Run it with a time limit: the
parser does not end on payloads that it does not know."""
import ctypes
import json
import sys


class Header(ctypes.Structure):
    """GstMIKEYMessage, without its first member (GstMiniObject)."""
    _fields_ = [("version", ctypes.c_uint8), ("type", ctypes.c_int), ("verify", ctypes.c_int), ("prf", ctypes.c_int), ("csb_id", ctypes.c_uint32),
                ("map_type", ctypes.c_int)]


class Session(ctypes.Structure):
    """GstMIKEYMapSRTP"""
    _fields_ = [("policy", ctypes.c_uint8), ("ssrc", ctypes.c_uint32), ("roc", ctypes.c_uint32)]


class Payload(ctypes.Structure):
    """GstMIKEYPayload without its first member."""
    _fields_ = [("type", ctypes.c_int), ("len", ctypes.c_uint)]


class Time(Payload):
    """GstMIKEYPayloadT"""
    _fields_ = [("kind", ctypes.c_int), ("value", ctypes.c_void_p)]


class Rand(Payload):
    """GstMIKEYPayloadRAND"""
    _fields_ = [("count", ctypes.c_uint8), ("data", ctypes.c_void_p)]


class Array(ctypes.Structure):
    """GArray"""
    _fields_ = [("data", ctypes.c_void_p), ("len", ctypes.c_uint)]


class Policy(Payload):
    """GstMIKEYPayloadSP"""
    _fields_ = [("number", ctypes.c_uint), ("protocol", ctypes.c_int), ("params", ctypes.POINTER(Array))]


class Param(ctypes.Structure):
    """GstMIKEYPayloadSPParam"""
    _fields_ = [("type", ctypes.c_uint8), ("len", ctypes.c_uint8), ("value", ctypes.c_void_p)]


T, SP, RAND = 5, 10, 11

MINI_OBJECT = 64  # bytes of GstMiniObject on 64-bit machines


def load():
    lib = ctypes.CDLL("libgstsdp-1.0.so.0")
    gst = ctypes.CDLL("libgstreamer-1.0.so.0")
    gst.gst_init(None, None)
    for name, result in (("new_from_data", ctypes.c_void_p), ("get_n_payloads", ctypes.c_uint), ("get_payload", ctypes.c_void_p),
                         ("get_n_cs", ctypes.c_uint), ("get_cs_srtp", ctypes.c_void_p)):
        getattr(lib, "gst_mikey_message_" + name).restype = result
    return lib


def inside(at):
    """Contents of a payload, as [type, ...]."""
    kind = Payload.from_address(at).type
    if kind == T:
        t = Time.from_address(at)
        return [kind, t.kind, ctypes.string_at(t.value, 8).hex()]
    if kind == RAND:
        r = Rand.from_address(at)
        return [kind, ctypes.string_at(r.data, r.count).hex()]
    if kind == SP:
        p = Policy.from_address(at)
        params = [Param.from_address(p.params[0].data + i * ctypes.sizeof(Param)) for i in range(p.params[0].len)]
        return [kind, p.number, p.protocol, [[x.type, ctypes.string_at(x.value, x.len).hex()] for x in params]]
    return [kind]


def read(data):
    lib = load()
    m = lib.gst_mikey_message_new_from_data(data, ctypes.c_size_t(len(data)), None, None)
    if not m:
        return {"error": "not a message"}
    m = ctypes.c_void_p(m)
    header = Header.from_address(m.value + MINI_OBJECT)
    sessions = [Session.from_address(lib.gst_mikey_message_get_cs_srtp(m, i)) for i in range(lib.gst_mikey_message_get_n_cs(m))]
    payloads = [inside(lib.gst_mikey_message_get_payload(m, i) + MINI_OBJECT) for i in range(lib.gst_mikey_message_get_n_payloads(m))]
    return {"version": header.version, "type": header.type, "verify": bool(header.verify), "csb_id": header.csb_id,
            "sessions": [[s.policy, s.ssrc, s.roc] for s in sessions], "payloads": payloads}


if __name__ == "__main__":
    print(json.dumps(read(bytes.fromhex(sys.argv[1]))))
