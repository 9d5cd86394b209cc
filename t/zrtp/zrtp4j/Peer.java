/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A ZRTP terminal by GNU ZRTP4J, for tests. It has no socket and reads no clock: each line of
 * standard input is a command, and its results are lines of standard output, up to a line ".".
 *
 * cache FILE: where the ZID and retained secrets are, from now on
 * new SSRC ALGORITHMS [terminal|gateway|enroller]: a stream. ALGORITHMS: ZRTP4J's names, separated by commas.
 *     Result: "hello" and the value of its a=zrtp-hash. terminal: its user accepts an enrolment;
 *     gateway: a trusted man in the middle; enroller: a gateway that also asks terminals to enrol
 * more SSRC ALGORITHMS: a further stream of the same call. It starts in Multistream mode, when
 *     stream 0 is secure
 * start N, packet N HEX, time MS, verify N (the user compared the SAS), end
 * keep N: the secret before the last one stays in use, as the RFC says; ZRTP4J leaves that to its
 *     users
 * relay N HEX: tells an enrolled terminal the SAS hash of the far side
 *
 * Results of stream N: "N send HEX"; "N rx KEY SALT BITS", "N tx KEY SALT BITS", with the length of
 * the authentication tag; "N secure SAS VERIFIED CIPHER HASH", with its view of our a=zrtp-hash;
 * "N says TEXT": what it reports; "N failed TEXT". */
import gnu.java.zrtp.ZRtp;
import gnu.java.zrtp.ZrtpCallback;
import gnu.java.zrtp.ZrtpCodes;
import gnu.java.zrtp.ZrtpConfigure;
import gnu.java.zrtp.ZrtpConstants;
import gnu.java.zrtp.ZrtpSrtpSecrets;
import gnu.java.zrtp.utils.ZrtpCrc32;
import gnu.java.zrtp.zidfile.ZidFile;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.List;

public class Peer {
	static final int HEADER = 12, CRC = 4, COOKIE = 0x5a525450;
	static final long NEVER = Long.MAX_VALUE;
	static final List<Stream> streams = new ArrayList<>();
	static PrintStream out;
	static long now;

	static byte[] bytes(String hex) {
		byte[] b = new byte[hex.length() / 2];

		for (int i = 0; i < b.length; i++)
			b[i] = (byte) Integer.parseInt(hex.substring(2 * i, 2 * i + 2), 16);
		return b;
	}

	static String hex(byte[] b) {
		StringBuilder s = new StringBuilder();

		for (byte octet : b)
			s.append(String.format("%02x", octet));
		return s.toString();
	}

	static class Stream implements ZrtpCallback {
		final int number = streams.size(), ssrc;
		final boolean accepts;
		final ZRtp engine;
		long due = NEVER;
		short seq = 1;

		Stream(int ssrc, String algorithms, String role) {
			boolean gateway = role.equals("gateway") || role.equals("enroller");
			ZrtpConfigure config = configure(algorithms);

			this.ssrc = ssrc;
			accepts = role.equals("terminal");
			config.setTrustedMitM(accepts);
			engine = new ZRtp(ZidFile.getInstance().getZid(), this, ZrtpConstants.clientId,
				config, gateway);
			engine.setEnrollmentMode(role.equals("enroller"));
			say("hello " + engine.getHelloHash(0));
		}

		static ZrtpConfigure configure(String algorithms) {
			ZrtpConfigure config = new ZrtpConfigure();

			config.clear();
			for (String name : algorithms.split(",")) {
				for (var a : ZrtpConstants.SupportedHashes.values())
					if (a.name().equals(name))
						config.addHashAlgo(a);
				for (var a : ZrtpConstants.SupportedSymCiphers.values())
					if (a.name().equals(name))
						config.addSymCipherAlgo(a);
				for (var a : ZrtpConstants.SupportedAuthLengths.values())
					if (a.name().equals(name))
						config.addAuthLength(a);
				for (var a : ZrtpConstants.SupportedPubKeys.values())
					if (a.name().equals(name))
						config.addPubKeyAlgo(a);
				for (var a : ZrtpConstants.SupportedSASTypes.values())
					if (a.name().equals(name))
						config.addSasTypeAlgo(a);
			}
			return config;
		}

		void say(String text) {
			out.println(number + " " + text);
		}

		/* The engine takes a message with its CRC, without the header of the packet. */
		void take(byte[] packet) {
			ByteBuffer p = ByteBuffer.wrap(packet);
			int end = packet.length - CRC;

			if (end < HEADER || packet[0] != 0x10 || p.getInt(4) != COOKIE ||
				!ZrtpCrc32.zrtpCheckCksum(packet, 0, end, p.getInt(end)))
				say("says a packet is not ZRTP");
			else
				process(Arrays.copyOfRange(packet, HEADER, packet.length), p.getInt(8));
		}

		/* The library itself fails at some messages: such an exchange has failed. */
		void process(byte[] message, int from) {
			try {
				engine.processZrtpMessage(message, from);
			} catch (RuntimeException e) {
				say("failed " + e.getMessage() + " " + e.getStackTrace()[0] +
					" " + e.getStackTrace()[2]);
			}
		}

		void tick() {
			if (now >= due) {
				due = NEVER;
				engine.processTimeout();
			}
		}

		/* data: a message, with room for the CRC. */
		public boolean sendDataZRTP(byte[] data) {
			ByteBuffer p = ByteBuffer.allocate(HEADER + data.length);
			int end = HEADER + data.length - CRC;

			p.putShort((short) 0x1000).putShort(seq++).putInt(COOKIE).putInt(ssrc).put(data);
			p.putInt(end, ZrtpCrc32.zrtpEndCksum(
				ZrtpCrc32.zrtpGenerateCksum(p.array(), 0, end)));
			say("send " + hex(p.array()));
			return true;
		}

		public int activateTimer(int ms) {
			due = now + ms;
			return 1;
		}

		public int cancelTimer() {
			due = NEVER;
			return 1;
		}

		public boolean srtpSecretsReady(ZrtpSrtpSecrets s, EnableSecurity part) {
			boolean sender = part == EnableSecurity.ForSender;
			boolean initiator = (s.getRole() == Role.Initiator) == sender;

			say((sender ? "tx " : "rx ") +
				hex(initiator ? s.getKeyInitiator() : s.getKeyResponder()) + " " +
				hex(initiator ? s.getSaltInitiator() : s.getSaltResponder()) + " " +
				s.getSrtpAuthTagLen());
			return true;
		}

		public void srtpSecretsOn(String cipher, String sas, boolean verified) {
			say("secure " + (sas == null ? "-" : sas) + " " + verified + " " + cipher + " " +
				engine.getPeerHelloHash());
		}

		public void sendInfo(ZrtpCodes.MessageSeverity severity, EnumSet<?> code) {
			say("says " + code);
		}

		public void zrtpNegotiationFailed(
			ZrtpCodes.MessageSeverity severity, EnumSet<?> code) {
			say("failed " + code);
		}

		public void zrtpNotSuppOther() {
			say("failed: no answer");
		}

		public void zrtpAskEnrollment(ZrtpCodes.InfoEnrollment info) {
			say("says " + info);
			engine.acceptEnrollment(accepts);
		}

		public void zrtpInformEnrollment(ZrtpCodes.InfoEnrollment info) {
			say("says " + info);
		}

		public void srtpSecretsOff(EnableSecurity part) {
		}

		public void handleGoClear() {
		}

		public void signSAS(byte[] hash) {
		}

		public boolean checkSASSignature(byte[] hash) {
			return false;
		}
	}

	static void open(String file) {
		ZidFile.getInstance().close();
		if (ZidFile.getInstance().open(file) < 0)
			throw new IllegalStateException("cannot open " + file);
		streams.clear();
	}

	/* A further stream is in Multistream mode, by the secret and algorithms of stream 0. */
	static void start(Stream s) {
		if (s.number > 0)
			s.engine.setMultiStrParams(streams.get(0).engine.getMultiStrParams());
		s.engine.startZrtpEngine();
	}

	static void obey(String[] word) {
		switch (word[0]) {
		case "cache" -> open(word[1]);
		case "new", "more" -> {
			if (word[0].equals("new"))
				streams.clear();
			streams.add(new Stream(Integer.parseUnsignedInt(word[1]), word[2],
				word.length > 3 ? word[3] : ""));
		}
		case "time" -> {
			now = Long.parseLong(word[1]);
			for (Stream s : streams)
				s.tick();
		}
		default -> {
			Stream s = streams.get(Integer.parseInt(word[1]));

			switch (word[0]) {
			case "start" -> start(s);
			case "packet" -> s.take(bytes(word[2]));
			case "keep" -> s.engine.setRs2Valid();
			case "verify" -> s.engine.SASVerified();
			case "relay" -> s.engine.sendSASRelayPacket(
				bytes(word[2]), ZrtpConstants.SupportedSASTypes.B32);
			default -> throw new IllegalArgumentException(word[0]);
			}
		}
		}
	}

	public static void main(String[] args) throws Exception {
		BufferedReader in = new BufferedReader(new InputStreamReader(System.in));

		/* Buffered, and flushed after each command. The library prints to System.out, too. */
		out = new PrintStream(new java.io.BufferedOutputStream(System.out, 1 << 16), false);
		System.setOut(System.err);
		for (String line = in.readLine(); line != null && !line.equals("end");
			line = in.readLine()) {
			obey(line.split(" "));
			out.println(".");
			out.flush();
		}
	}
}
