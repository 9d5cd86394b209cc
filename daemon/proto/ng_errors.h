/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Why ng requests are refused: error-reason of a reply, or message of a load limit. One row each;
 * xcipher-ng(7) lists the same texts (tools/docs.sh), with what to do. Clients compare texts: do
 * not change one. */
#ifndef PROTO_NG_ERRORS_H
#define PROTO_NG_ERRORS_H

/* X(id, text, what to do) */
/* clang-format off */
#define NG_ERRORS(X) \
	X(NOMEM, "Out of memory", \
		"The daemon or the host has no memory left: see the log.") \
	X(INTERNAL, "Internal error", \
		"A fault of xcipherd: report it with the log.") \
	X(TOO_LONG, "Reply is too long", \
		"The reply does not fit into a datagram: use TCP or HTTP.") \
	X(BUSY, "Relay is busy", \
		"Workers do not keep up: send the request again later, see the log.") \
	X(PORTS, "Ran out of ports", \
		"Ports, key slots or descriptors ran out, and the log names which: widen port-min to port-max.") \
	X(NO_PAYLOAD, "Invalid data (no payload)", \
		"The message is a cookie alone: send a dictionary after it.") \
	X(BAD_FRAME, "Invalid NG data format", \
		"Begin the message with a cookie and a space.") \
	X(BAD_JSON, "Could not decode JSON dictionary", \
		"The JSON is malformed.") \
	X(BAD_BENCODE, "Could not decode bencode dictionary", \
		"The bencode is malformed.") \
	X(NO_COMMAND, "Dictionary contains no key \"command\"", \
		"Add the key command.") \
	X(BAD_COMMAND, "Unrecognized command", \
		"See COMMANDS for the names.") \
	X(BAD_VALUE, "Invalid value", \
		"The text names the key, whose value has a control character.") \
	X(NO_SDP, "No SDP body in message", \
		"Add the key sdp.") \
	X(NO_CALL_ID, "No call-id in message", \
		"Add the key call-id.") \
	X(NO_FROM_TAG, "No from-tag in message", \
		"Add the key from-tag.") \
	X(NO_TO_TAG, "No to-tag in message", \
		"Add the key to-tag.") \
	X(UNKNOWN_CALL, "Unknown call-id", \
		"The call has ended, or another node has it.") \
	X(NOTHING_DELETED, "Call-ID not found or tags didn't match", \
		"The call has ended already; a warning without the flag fatal.") \
	X(DIALOG, "Invalid dialogue association", \
		"The text names the cause and the remedy, see DIALOGS.") \
	X(PARTIES, "Too many parties", \
		"A call has up to 16 parties: delete branches that ended.") \
	X(PARTICIPANT, "No matching participant in the call", \
		"No party has the tag, label or address of the request.") \
	X(ADDRESS, "Malformed address in message", \
		"Give an IPv4 or IPv6 address in the key address.") \
	X(MEDIA_ADDRESS, "Media address is not allowed", \
		"The SDP names an address that media may not be sent to: allow it with --media-allow.") \
	X(SDP, "Failed to parse SDP", \
		"The text names the line of the SDP that is malformed.") \
	X(SDP_CONNECTION, "Incomplete SDP specification", \
		"An m-line has no c= line.") \
	X(SDP_WRITE, "Error rewriting SDP", \
		"The SDP cannot be written: see the log.") \
	X(TWICE, "Too many m= lines: OSRTP=offer-legacy writes each twice", \
		"Offer fewer m-lines, or do without the flag that doubles them.") \
	X(HIDDEN, "Too many m= lines, including those hidden from the sender", \
		"The dialog has used up its m-lines: begin another.") \
	X(INTERFACE, "No interface", \
		"The option interface has no interface of that name.") \
	X(SUITE, "No common crypto suite", \
		"See sdes-accept, and the flags SDES; the text names the reason.") \
	X(DTLS, "DTLS-SRTP is not available", \
		"See keying-threads in xcipherd.conf, or offer SDES or RTP.") \
	X(FINGERPRINT, "No usable a=fingerprint", \
		"The text says why; see dtls-sha1 for old terminals.") \
	X(SETUP, "a=setup does not fit", \
		"The terminal's DTLS role is impossible; the text says why.") \
	X(MIKEY, "MIKEY exchange failed", \
		"The text says why; see xcipher-keying(7).") \
	X(CRYPTO_LINE, "No usable crypto line in answer", \
		"The text names the reason; for RTP as the answer to SRTP see allow-RTP-answer.") \
	X(MISFIT, "Answer does not fit the offer", \
		"The answer has other media than the offer.") \
	X(SESSIONS, "Parallel session limit reached", \
		"Raise max-sessions, or try another node.") \
	X(CPU, "CPU usage limit exceeded", \
		"Raise max-cpu, or try another node.") \
	X(LOAD, "Load limit exceeded", \
		"Raise max-load, or try another node.") \
	X(BANDWIDTH, "Bandwidth limit exceeded", \
		"Raise max-bandwidth, or try another node.") \
	X(DRAIN, "Relay is being drained", \
		"Try another node; xcipherctl drain off ends it.") \
	X(STANDBY, "This node is on standby", \
		"Send the request to the active node.") \
	X(NO_SAS, "No ZRTP exchange of the call has a SAS", \
		"query shows the SAS of terminals whose ZRTP ends at the relay.") \
	X(NOT_RECORDED, "The call is not being recorded", \
		"Send start recording first.") \
	X(RECORDING_OFF, "Recording is off: xcipherd was started without --recording-dir", \
		"Set recording-dir.") \
	X(RECORDING_NAME, "Recording file is not a plain file name", \
		"Leave out folders and leading dots.") \
	X(RECORDING_PATTERN, "Recording pattern makes no plain file name", \
		"Use %c, %r, %t and %%, no folders and no leading dot, up to 199 bytes.") \
	X(RECORDINGS, "Too many recordings", \
		"The limit of parallel recordings is reached: stop others.") \
	X(RECORDER, "Recorder is busy", \
		"The disk does not keep up: send the request again later.") \
	X(RECORDING, "Recording cannot be started", \
		"The file cannot be opened: see the log.") \
	X(TWO_CALLS, "Not supported: parties of two calls are not connected", \
		"Connect parties of one call.") \
	X(CONNECT_PASSED, "Not supported: media that are passed through cannot be connected", \
		"Do without the flag passthrough.") \
	X(NO_REDIS, "There is no Redis: set --redis", \
		"Set redis.") \
	X(NOT_HERE, "Not supported here", \
		"This daemon has no such function.") \
	X(NO_WEB, "Not supported here: set --listen-ng-unix", \
		"The request is one of xcipher-web, and the daemon has no socket for it.") \
	X(CODEC, "Not supported: this relay transcodes only between parties of a call", \
		"Use another relay for it.") \
	X(FMTP, "A codec refuses its a=fmtp", \
		"The SDP asks a transcoded codec for what the plug-in cannot do, or in more than 256 bytes: see xcipher-codec(7).") \
	X(NO_AUDIO, "There are no codec threads: set --codec-threads", \
		"Set codec-threads.") \
	X(NO_PARTY, "No participant party specified", \
		"Add from-tag, label, address or the flag all.") \
	X(NO_MEDIA, "No media file specified", \
		"Add file, blob or blob64.") \
	X(DB, "Not supported: db-id (xcipherd has no database)", \
		"Use file or blob.") \
	X(PLAY_OFF, "Playing files is off: xcipherd was started without --play-dir", \
		"Set play-dir.") \
	X(PLAY_FILE, "Media file cannot be played", \
		"The text says why.") \
	X(PLAY_LEG, "The participant has no audio m-line that can be played to", \
		"Both parties need an answered audio m-line with keys and codecs that xcipherd has.") \
	X(DIGIT, "Invalid DTMF code: 0 to 15, or one of 0-9 * # A-D", \
		"Set code.") \
	X(TRIGGER, "Invalid DTMF trigger: up to 16 of 0-9 * # A-D", \
		"Set DTMF-security-trigger, and its end.") \
	X(MIX, "Not supported: this relay does not inject, use play media", \
		"Send play media without block-egress: the file is mixed with the other party.") \
	X(START_FORWARDING, "Not supported: use start recording", \
		"Send start recording.") \
	X(STOP_FORWARDING, "Not supported: use stop recording", \
		"Send stop recording.") \
	X(JOIN, "Not supported: parties of one call are joined by connect, those of several never", \
		"Use connect, or a conference server.") \
	X(OWN_MEDIA, "Not supported: use a media server", \
		"Use a media server.") \
	X(CLI, "Not supported: use xcipherctl", \
		"Use xcipherctl.") \
	X(LIMITS, "Limits are numbers, 0 = no limit: max-sessions, max-cpu in percent up to 100, max-load, max-bandwidth in bytes per second", \
		"Give numbers.") \
	X(DRAIN_VALUE, "drain is on or off", \
		"Give on or off.") \
	X(LEVEL, "level is a number from 0 to 7: 3 errors, 4 warnings, 6 information, 7 debugging", \
		"Give a number.") \
	X(ACTIVE, "This node is active already", \
		"No action is needed.") \
	X(STANDBY_ALREADY, "This node is on standby already", \
		"No action is needed.") \
	X(DEBUG, "debug is on or off", \
		"Give on or off.")
/* clang-format on */

/* NGE_id: the text, constant. */
#define X(id, text, todo) extern const char NGE_##id[];
NG_ERRORS(X)
#undef X

#endif
