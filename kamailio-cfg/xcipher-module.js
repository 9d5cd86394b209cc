// SPDX-License-Identifier: GPL-2.0-or-later
// The routes of kamailio-module.cfg for KEMI. Transactions of requests with SDP, and of BYE, are suspended until the daemon answers. Then
// xc_answered() runs.

var OFFER = "RTP/SAVP SDES-only-AES_CM_128_HMAC_SHA1_32 SDES-pad ICE=remove replace-origin direction=caller direction=callee";
var ANSWER = "RTP/SAVP SDES-only-AES_CM_128_HMAC_SHA1_80 SDES-pad ICE=remove replace-origin";

var UPSTREAM = 30; // message flag: a request from the called side, for the calling side

// The flags of the side that receives the SDP
function toward(upstream) {
	return upstream ? ANSWER : OFFER;
}

function relay() {
	if (KSR.tm.t_relay() < 0) {
		KSR.sl.sl_reply_error();
	}
}

// Anybody can write headers that mark an emergency call. The module marks calls by the dialled URI (emergency_numbers, urn:service:sos).
function remove_marks() {
	KSR.textops.remove_hf("Priority");
	KSR.textops.remove_hf("Resource-Priority");
}

function ksr_request_route() {
	remove_marks();
	if (KSR.maxfwd.process_maxfwd(10) < 0) {
		KSR.sl.send_reply(483, "Too Many Hops");
		return;
	}
	if (KSR.is_CANCEL()) {
		if (KSR.tm.t_check_trans() > 0) {
			KSR.xcipher.manage("nowait");
			relay();
		}
		return;
	}
	if (KSR.siputils.has_totag() > 0) {
		if (KSR.rr.loose_route() < 0 && !(KSR.is_ACK() && KSR.tm.t_check_trans() > 0)) {
			KSR.sl.send_reply(404, "Not here");
			return;
		}
	} else {
		if (KSR.tm.t_check_trans() == 0) {
			return;
		}
		if (KSR.is_INVITE()) {
			KSR.rr.record_route();
		}
	}
	var up = KSR.siputils.has_totag() > 0 && KSR.rr.is_direction("upstream") > 0;

	if (up) {
		KSR.setflag(UPSTREAM);
	}
	if (KSR.is_ACK()) {
		// The answer to an offer in a reply. Without the ACK the callee repeats its 200 for a while, and then sends BYE.
		if (KSR.xcipher.manage(toward(up)) < 0) {
			KSR.warn("xcipher: answer in ACK refused, call " + KSR.pv.get("$ci") + ": " + KSR.pv.get("$xcipher(reason)") + "\n");
		} else {
			relay();
		}
		return;
	}
	if (isTrickled()) {
		if (KSR.siputils.has_totag() < 0) {
			KSR.sl.send_reply(481, "Call Does Not Exist");
			return;
		}
		if (KSR.xcipher.manage_async("", "xc_trickled") != 0) {
			xc_trickled();
		}
		return;
	}
	KSR.tm.t_on_reply("xc_reply");
	if (KSR.siputils.has_totag() < 0) {
		KSR.tm.t_on_failure("xc_failure");
	}
	// 0: suspended. This function must end.
	if (KSR.xcipher.manage_async(toward(up), "xc_answered") != 0) {
		xc_answered();
	}
}

// Candidates that a terminal sends after its SDP (trickle ICE, RFC 8840). ICE ends at the daemon, so the other side never gets them.
function isTrickled() {
	return KSR.is_INFO() && /^application\/trickle-ice-sdpfrag([ ;]|$)/i.test(KSR.pv.get("$cT"));
}

function xc_trickled() {
	if (KSR.pv.get("$xcipher(result)") < 0) {
		KSR.warn("xcipher: ICE candidates refused, call " + KSR.pv.get("$ci") + ": " + KSR.pv.get("$xcipher(reason)") + "\n");
	}
	KSR.sl.send_reply(KSR.pv.get("$xcipher(code)"), KSR.pv.get("$xcipher(phrase)"));
}

function xc_answered() {
	var result = KSR.pv.get("$xcipher(result)");

	if (result < 0 && !KSR.is_BYE()) {
		// The reason may reveal addresses, so it is only logged.
		KSR.warn("xcipher: offer refused, call " + KSR.pv.get("$ci") + ": " + KSR.pv.get("$xcipher(reason)") + "\n");
		if (KSR.pv.get("$xcipher(sip_warning)")) {
			KSR.textops.append_to_reply("Warning: " + KSR.pv.get("$xcipher(sip_warning)") + "\r\n");
		}
		KSR.sl.send_reply(KSR.pv.get("$xcipher(code)"), KSR.pv.get("$xcipher(phrase)"));
		return;
	}
	relay();
}

function xc_reply() {
	if (/^(INVITE|UPDATE)$/.test(KSR.pv.get("$rm")) && KSR.xcipher.manage(toward(!KSR.isflagset(UPSTREAM))) < 0) {
		KSR.xcipher.reject(0, "");
	}
}

// SDP that no daemon processed must not pass: neither in a reply to another method (PRACK, OPTIONS), nor in a refusal, nor in a reply
// without a transaction, which anybody who knows Call-ID and From tag can send. Such a reply goes on without its body, and never to a
// daemon. A callee repeats its 200 until it receives the ACK, also after tm has forgotten the transaction: the caller has its SDP already.
function ksr_reply_route() {
	// Leaves alone what tm's reply route will process: 1xx and 2xx to INVITE or UPDATE, of a transaction that this finds.
	KSR.tm.t_check_trans();
	if (KSR.xcipher.strip() < 0) {
		KSR.warn("xcipher: malformed reply dropped, from " + KSR.pv.get("$si") + "\n");
		KSR.set_drop();
	}
	return 1;
}

// No phone accepted the call, or each answer was refused. A refused re-INVITE does not change the call.
function xc_failure() {
	if (KSR.tm.t_is_canceled() > 0) {
		return;
	}
	// An emergency call whose SRTP was refused is sent again with RTP, if emergency_fallback contains "rtp".
	if (KSR.pv.is_null("$avp(xcipher_retried)") && KSR.tm.t_check_status("415|488|606") > 0
			&& KSR.xcipher.retry_rtp(OFFER) > 0) {
		KSR.pv.seti("$avp(xcipher_retried)", 1);
		KSR.tm.t_on_reply("xc_reply");
		KSR.tm.t_on_failure("xc_failure");
		relay();
		return;
	}
	KSR.xcipher.delete("nowait");
}
