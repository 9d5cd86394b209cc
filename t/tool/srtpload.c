/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Load for benchmarks: RTP or SRTP of many legs, made and encrypted before the clock starts, so
 * that the machine's time goes to the relay. Frames leave and arrive by packet sockets, with the
 * kernel's arrival timestamps. Every packet is checked for length, loss and order. A sample of each
 * leg is authenticated, decrypted and compared, by OpenSSL instead of our engines. Delay is
 * measured at the terminal's interface, by the kernel's timestamps of leaving and returning
 * packets. So it does not include time in which this program had no processor. Legs 2k and 2k+1
 * talk to each other through the relay.
 *
 *   srtpload DEVICE GATEWAY-IP SPEC RATE SECONDS [NAME=VALUE...]
 *
 * SPEC as for rtpload (suites AES_CM_128 or plain, one key), RATE in packets per second and leg.
 *   sample    one in so many packets is decrypted (16)
 *   payload   bytes (160)
 *   burst-us  packets that are due leave together every so many microseconds at most (50)
 *   drain-ms  how long to wait for packets on their way after the last was sent (500)
 *   stamps    "call": delay counts from the call to send, which is longer, and costs the machine
 *             less. JSON has it as call_* in any case. Otherwise "leave"
 *   skip      packets per leg that earlier runs sent; indexes continue after them (0)
 *   receiver  device on which packets arrive, if not DEVICE. They are addressed to it, so both
 *             may be the ends of one link, without a relay
 *   tags      SRTP+: both ends of each leg with SRTP have tags of this scheme. A sample of received
 *             tags is compared
 *   busy      "yes": JSON has the busy time of all processors as busy_us (needs root)
 * One JSON object on standard output. The local ports must have no sockets; drop what arrives there
 * (nft, prerouting), or the kernel answers with ICMP. */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/hist.h"
#include "srtp/kdf.h"

#include "load_tags.h"
#include "spec.h"

enum {
	ETH = 14,
	IP = 20,
	UDP = 8,
	RTP = 12,
	HEAD = ETH + IP + UDP,
	TAG_MAX = 10,
	PAYLOAD_MAX = 1400
};
enum { BURST = 64, BLOCK = 1 << 20, BLOCKS = 64 };

struct dir { /* one direction of a leg */
	struct srtp_session_keys keys;
	uint32_t tag; /* 0: plain */
	struct load_tags plus;
};

struct leg {
	uint32_t ip, to_ip; /* network order */
	uint16_t port, to_port;
	struct dir tx, rx;
	uint32_t first;  /* index of its packet 0 */
	uint32_t next;   /* number expected */
	uint32_t leaves; /* number of those that left */
};

static struct leg *legs;
static uint32_t leg_count, per_leg, payload = 160, stride, sample = 16, skip;
static uint8_t *frames;             /* [per_leg * leg_count * stride], in the order of sending */
static uint16_t *frame_len;         /* likewise */
static _Atomic uint64_t *call_ns;   /* likewise, when it was given to the kernel */
static uint64_t *left_ns;           /* likewise; 0: it has not left, or that was missed */
static uint8_t *seen;               /* likewise: it has arrived */
static uint32_t leg_of_port[65536]; /* leg + 1 */
static uint8_t mac_own[6], mac_gateway[6];
static atomic_bool stop_receiving;
static struct {
	uint64_t sent, send_errors, late, bursts;
	uint64_t received, reordered, duplicates, wrong, bad_auth, sampled, overruns;
} total;
static bool stamp_leaving = true;
static uint8_t plus;                  /* scheme of SRTP+, as load_tags_init() */
static const char *device, *receiver; /* where packets leave, where they arrive */
static uint32_t *delay; /* [delays] in ns; exact, for targets are compared with them */
/* Likewise, from the call to send: with what this program waited and the kernel did before the
 * packet left. */
static uint32_t *from_call;
static size_t delays;
static struct hist behind; /* of a packet that left later than it was due, by how much */

static void die(const char *what)
{
	fprintf(stderr, "srtpload: %s: %s\n", what, strerror(errno));
	exit(2);
}

/* --- Legs ------------------------------------------------------------------------------------- */

static void dir_make(struct dir *d, const char *suite, const char *hex)
{
	const struct srtp_suite *s = srtp_suite_find(str_from(suite));
	struct srtp_master m = {0};
	uint8_t key[30];

	if (strcmp(suite, "plain") == 0)
		return;
	if (!s || s->cipher != XC_CIPHER_AES_CM || s->key_len != 16) {
		fprintf(stderr,
			"srtpload: suite %s: only AES_CM_128_HMAC_SHA1_80 and _32, and plain\n",
			suite);
		exit(2);
	}
	m.suite = s->id;
	d->tag = s->rtp_tag_len;
	spec_key(key, sizeof(key), hex);
	memcpy(m.key, key, 16);
	memcpy(m.salt, key + 16, 14);
	if (srtp_kdf(&d->keys, &m, false, 0))
		die("key derivation");
	load_tags_init(&d->plus, plus, &m);
}

static void add_leg(uint32_t n, struct spec_leg *s)
{
	struct leg *l;

	legs = spec_grow(legs, n, sizeof(*legs));
	l = &legs[n];
	*l = (struct leg){.port = (uint16_t)s->rtp,
		.to_port = (uint16_t)s->to_rtp,
		.first = 65530 - n % 7 + skip};
	if (inet_pton(AF_INET, s->ip, &l->ip) != 1 || inet_pton(AF_INET, s->to_ip, &l->to_ip) != 1)
		die("address");
	dir_make(&l->tx, s->tx_suite, s->tx_key);
	dir_make(&l->rx, s->rx_suite, s->rx_key);
	leg_of_port[l->port] = n + 1;
}

/* --- SRTP, by OpenSSL ------------------------------------------------------------------------- */

/* The same in each run that the leg takes part in. */
static uint32_t ssrc_of(uint32_t leg)
{
	return 0x10000000 + legs[leg].port;
}

/* The encrypted part of a packet. */
static uint32_t body_len(const struct dir *d)
{
	return payload + d->plus.block;
}

static void keystream_add(
	const struct dir *d, EVP_CIPHER_CTX *ctx, uint8_t *rtp, uint32_t ssrc, uint64_t index)
{
	uint8_t iv[16] = {0};
	int done;

	memcpy(iv, d->keys.salt, 14);
	for (int i = 0; i < 4; i++)
		iv[4 + i] ^= (uint8_t)(ssrc >> (24 - 8 * i));
	for (int i = 0; i < 6; i++)
		iv[8 + i] ^= (uint8_t)(index >> (40 - 8 * i));
	if (EVP_EncryptInit_ex(ctx, NULL, NULL, NULL, iv) != 1 ||
		EVP_EncryptUpdate(ctx, rtp + RTP, &done, rtp + RTP, (int)body_len(d)) != 1)
		die("encrypt");
}

static void tag_make(const struct dir *d, uint8_t tag[20], const uint8_t *rtp, uint64_t index)
{
	uint8_t m[RTP + PAYLOAD_MAX + PREAUTH_BLOCK_MAX + 4];
	uint32_t len = RTP + body_len(d);

	memcpy(m, rtp, len);
	put_be32(m + len, (uint32_t)(index >> 16));
	if (!HMAC(EVP_sha1(), d->keys.auth, 20, m, len + 4, tag, NULL))
		die("HMAC");
}

static void fill(uint8_t *p, uint32_t leg, uint32_t number)
{
	for (uint32_t i = 0; i < payload; i++)
		p[i] = (uint8_t)(leg * 31 + number * 7 + i);
}

static EVP_CIPHER_CTX *cipher_of(const struct dir *d)
{
	EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();

	if (!ctx || EVP_EncryptInit_ex(ctx, EVP_aes_128_ctr(), NULL, d->keys.enc, NULL) != 1)
		die("cipher");
	return ctx;
}

/* --- Frames ----------------------------------------------------------------------------------- */

static uint32_t sum16(uint32_t sum, const uint8_t *p, uint32_t len)
{
	for (uint32_t i = 0; i + 1 < len; i += 2)
		sum += be16(p + i);
	return len & 1 ? sum + ((uint32_t)p[len - 1] << 8) : sum;
}

static uint16_t folded(uint32_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

static void headers(uint8_t *f, const struct leg *l, uint32_t rtp_len)
{
	uint8_t *ip = f + ETH, *udp = ip + IP;
	uint16_t sum;

	memcpy(f, mac_gateway, 6);
	memcpy(f + 6, mac_own, 6);
	put_be16(f + 12, ETH_P_IP);
	memset(ip, 0, IP);
	ip[0] = 0x45;
	put_be16(ip + 2, (uint16_t)(IP + UDP + rtp_len));
	ip[6] = 0x40; /* do not fragment */
	ip[8] = 64;
	ip[9] = IPPROTO_UDP;
	memcpy(ip + 12, &l->ip, 4);
	memcpy(ip + 16, &l->to_ip, 4);
	put_be16(ip + 10, folded(sum16(0, ip, IP)));
	put_be16(udp, l->port);
	put_be16(udp + 2, l->to_port);
	put_be16(udp + 4, (uint16_t)(UDP + rtp_len));
	put_be16(udp + 6, 0);
	sum = folded(sum16(IPPROTO_UDP + UDP + rtp_len + sum16(0, ip + 12, 8), udp, UDP + rtp_len));
	put_be16(udp + 6, sum ? sum : 0xffff);
}

static void leg_frames(uint32_t k)
{
	const struct leg *l = &legs[k];
	EVP_CIPHER_CTX *ctx = l->tx.tag ? cipher_of(&l->tx) : NULL;

	for (uint32_t i = 0; i < per_leg; i++) {
		size_t at = (size_t)i * leg_count + k;
		uint8_t *f = frames + at * stride, *rtp = f + HEAD, tag[20];
		uint64_t index = (uint64_t)l->first + i;
		uint32_t len = RTP + body_len(&l->tx);

		rtp[0] = 0x80;
		rtp[1] = 0;
		put_be16(rtp + 2, (uint16_t)index);
		put_be32(rtp + 4, (skip + i) * 160);
		put_be32(rtp + 8, ssrc_of(k));
		fill(rtp + RTP, k, i);
		load_tags_block(&l->tx.plus, rtp + RTP + payload, ssrc_of(k), index);
		if (ctx) {
			keystream_add(&l->tx, ctx, rtp, ssrc_of(k), index);
			tag_make(&l->tx, tag, rtp, index);
			memcpy(rtp + len, tag, l->tx.tag);
		}
		len += l->tx.tag;
		load_tags_write(&l->tx.plus, rtp, len, ssrc_of(k), index);
		len += l->tx.plus.len;
		headers(f, l, len);
		frame_len[at] = (uint16_t)(HEAD + len);
	}
	EVP_CIPHER_CTX_free(ctx);
}

static void frames_make(void)
{
	size_t all = (size_t)per_leg * leg_count;

	stride = (HEAD + RTP + payload + PREAUTH_BLOCK_MAX + TAG_MAX + PREAUTH_TAG_MAX + 15) / 16 *
		16;
	frames = malloc(all * stride);
	frame_len = malloc(all * sizeof(*frame_len));
	call_ns = calloc(all, sizeof(*call_ns));
	left_ns = calloc(all, sizeof(*left_ns));
	from_call = calloc(all, sizeof(*from_call));
	delay = calloc(all, sizeof(*delay));
	seen = calloc(all, 1);
	if (!frames || !frame_len || !call_ns || !left_ns || !from_call || !delay || !seen)
		die("memory for the packets");
	for (uint32_t k = 0; k < leg_count; k++)
		leg_frames(k);
}

/* --- The link --------------------------------------------------------------------------------- */

static int packet_socket(const char *name, int protocol)
{
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	struct sockaddr_ll sa = {.sll_family = AF_PACKET,
		.sll_protocol = htons((uint16_t)protocol),
		.sll_ifindex = (int)if_nametoindex(name)};

	if (fd < 0 || !sa.sll_ifindex || bind(fd, (struct sockaddr *)&sa, sizeof(sa)))
		die(name);
	return fd;
}

static void mac_of(const char *name, uint8_t mac[6])
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq ifr = {0};

	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", name);
	if (fd < 0 || ioctl(fd, SIOCGIFHWADDR, &ifr))
		die(name);
	memcpy(mac, ifr.ifr_hwaddr.sa_data, 6);
	close(fd);
}

/* The gateway's address is asked for by sending it something. */
static void find_gateway(const char *gateway)
{
	struct sockaddr_in sa = {.sin_family = AF_INET, .sin_port = htons(9)};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	unsigned m[6];
	char line[256], ip[64], mac[64];

	inet_pton(AF_INET, gateway, &sa.sin_addr);
	if (fd < 0)
		die(gateway);
	for (int tries = 0; tries < 50; tries++) {
		FILE *f;

		sendto(fd, "", 1, 0, (struct sockaddr *)&sa, sizeof(sa));
		usleep(20000);
		f = fopen("/proc/net/arp", "re");
		while (f && fgets(line, sizeof(line), f))
			if (sscanf(line, "%63s %*s %*s %63s", ip, mac) == 2 &&
				strcmp(ip, gateway) == 0 &&
				sscanf(mac, "%x:%x:%x:%x:%x:%x", &m[0], &m[1], &m[2], &m[3], &m[4],
					&m[5]) == 6 &&
				(m[0] | m[1] | m[2] | m[3] | m[4] | m[5])) {
				for (int i = 0; i < 6; i++)
					mac_gateway[i] = (uint8_t)m[i];
				fclose(f);
				close(fd);
				return;
			}
		if (f)
			fclose(f);
	}
	errno = EHOSTUNREACH;
	die(gateway);
}

/* --- Sending ---------------------------------------------------------------------------------- */

static void send_burst(int fd, size_t from, unsigned n)
{
	struct mmsghdr msg[BURST];
	struct iovec iov[BURST];
	uint64_t now = clock_real_ns();
	unsigned done = 0;

	for (unsigned i = 0; i < n; i++) {
		iov[i] = (struct iovec){frames + (from + i) * stride, frame_len[from + i]};
		msg[i] = (struct mmsghdr){.msg_hdr = {.msg_iov = &iov[i], .msg_iovlen = 1}};
		atomic_store_explicit(&call_ns[from + i], now, memory_order_relaxed);
	}
	while (done < n) {
		int k = sendmmsg(fd, msg + done, n - done, 0);

		if (k <= 0) {
			total.send_errors++;
			done++;
		} else {
			done += (unsigned)k;
		}
	}
	total.sent += n;
	total.bursts++;
}

static void book_lateness(size_t from, size_t to, uint64_t now, double per_ns)
{
	struct hist_run run = {.h = &behind};

	for (size_t i = from; i < to; i++) {
		uint64_t at = (uint64_t)((double)i / per_ns);

		hist_run_add(&run, now > at ? now - at : 0);
	}
	hist_run_end(&run);
}

/* Packet number i of all is due at start + i / (rate of all). */
static void send_all(int fd, double rate, uint64_t burst_ns)
{
	double per_ns = rate * leg_count / 1e9;
	size_t all = (size_t)per_leg * leg_count, at = 0;
	uint64_t start = clock_mono_ns();

	while (at < all) {
		uint64_t now = clock_mono_ns() - start;
		size_t due = (size_t)((double)now * per_ns) + 1;
		uint64_t next;
		struct timespec ts;

		due = due > all ? all : due;
		if (due - at > leg_count)
			total.late++; /* a whole round behind: the generator cannot keep up */
		book_lateness(at, due, now, per_ns);
		while (at < due) {
			unsigned n = (unsigned)(due - at > BURST ? BURST : due - at);

			send_burst(fd, at, n);
			at += n;
		}
		next = (uint64_t)((double)at / per_ns);
		next = start + (next > now + burst_ns ? next : now + burst_ns);
		ts = (struct timespec){(time_t)(next / NS_PER_SEC), (long)(next % NS_PER_SEC)};
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL);
	}
}

/* --- Receiving -------------------------------------------------------------------------------- */

static void check_sampled(struct leg *l, uint32_t leg, uint32_t number, uint8_t *rtp)
{
	uint64_t index = (uint64_t)legs[leg ^ 1].first + number;
	uint32_t end = RTP + body_len(&l->rx);
	uint8_t want[PAYLOAD_MAX], tag[20];

	total.sampled++;
	if (!load_tags_right(&l->rx.plus, rtp, end + l->rx.tag, ssrc_of(leg ^ 1), index))
		total.bad_auth++;
	if (l->rx.tag) {
		EVP_CIPHER_CTX *ctx = cipher_of(&l->rx);

		tag_make(&l->rx, tag, rtp, index);
		if (CRYPTO_memcmp(tag, rtp + end, l->rx.tag) != 0) {
			total.bad_auth++;
			EVP_CIPHER_CTX_free(ctx);
			return;
		}
		keystream_add(&l->rx, ctx, rtp, ssrc_of(leg ^ 1), index);
		EVP_CIPHER_CTX_free(ctx);
	}
	fill(want, leg ^ 1, number);
	if (memcmp(want, rtp + RTP, payload) != 0)
		total.wrong++;
}

/* The sequence number's place among a leg's, the nearest to the one expected. */
static uint32_t number_of(const struct leg *from, const uint8_t *rtp, uint32_t expected)
{
	uint32_t seq = (uint16_t)(be16(rtp + 2) - from->first);

	return expected + (uint32_t)(int16_t)(uint16_t)(seq - expected);
}

/* One of ours on its way out. */
static void leave(const uint8_t *f, uint32_t len, uint64_t t_ns)
{
	const uint8_t *ip = f + ETH, *rtp = f + HEAD;
	uint32_t k, number;

	if (len < HEAD + RTP || be16(f + 12) != ETH_P_IP || ip[0] != 0x45 || ip[9] != IPPROTO_UDP)
		return;
	k = leg_of_port[be16(ip + IP)];
	if (k == 0 || memcmp(ip + 12, &legs[k - 1].ip, 4) != 0)
		return;
	number = number_of(&legs[k - 1], rtp, legs[k - 1].leaves);
	if (number >= per_leg)
		return;
	left_ns[(size_t)number * leg_count + k - 1] = t_ns;
	legs[k - 1].leaves = number + 1;
}

static uint32_t since(uint64_t now, uint64_t then)
{
	uint64_t ns = now > then ? now - then : 0;

	return ns < UINT32_MAX ? (uint32_t)ns : UINT32_MAX;
}

static void take(uint8_t *f, uint32_t len, uint64_t t_ns)
{
	uint8_t *ip = f + ETH, *rtp = f + HEAD;
	uint32_t k, number, rtp_len;
	uint64_t called;
	struct leg *l;
	size_t at;

	if (len < HEAD + RTP || be16(f + 12) != ETH_P_IP || ip[0] != 0x45 || ip[9] != IPPROTO_UDP)
		return;
	k = leg_of_port[be16(ip + IP + 2)];
	if (k == 0 || memcmp(ip + 16, &legs[k - 1].ip, 4) != 0 || (rtp[1] >= 192 && rtp[1] <= 223))
		return;
	l = &legs[--k];
	rtp_len = RTP + body_len(&l->rx) + l->rx.tag + l->rx.plus.len;
	if (len < HEAD + rtp_len || be16(ip + IP + 4) != UDP + rtp_len ||
		be32(rtp + 8) != ssrc_of(k ^ 1)) {
		total.wrong++;
		return;
	}
	number = number_of(&legs[k ^ 1], rtp, l->next);
	if (number >= per_leg) {
		total.wrong++;
		return;
	}
	at = (size_t)number * leg_count + (k ^ 1);
	if (seen[at]) { /* not counted as received: a copy would hide another packet's loss */
		total.duplicates++;
		return;
	}
	seen[at] = 1;
	if (number < l->next)
		total.reordered++;
	else
		l->next = number + 1;
	total.received++;
	called = atomic_load_explicit(&call_ns[at], memory_order_relaxed);
	if (left_ns[at] || !stamp_leaving) {
		from_call[delays] = since(t_ns, called);
		delay[delays++] = since(t_ns, stamp_leaving ? left_ns[at] : called);
	}
	/* Not one in so many of all: they come leg by leg, and it would be the same legs' turn each
	 * time. */
	if ((number + k) % sample == 0)
		check_sampled(l, k, number, rtp);
}

struct ring {
	int fd;
	uint8_t *map;
};

static void ring_open(struct ring *r, const char *name)
{
	/* Of what leaves the headers will do. */
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)(SKF_AD_OFF + SKF_AD_PKTTYPE)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PACKET_OUTGOING, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, HEAD + RTP),
		BPF_STMT(BPF_RET | BPF_K, 1 << 18),
	};
	struct sock_fprog filter = {ARRAY_LEN(code), code};
	int version = TPACKET_V3, on = 1, ignore = !stamp_leaving;
	struct tpacket_req3 req = {.tp_block_size = BLOCK,
		.tp_block_nr = BLOCKS,
		.tp_frame_size = 2048,
		.tp_frame_nr = BLOCK / 2048 * BLOCKS,
		.tp_retire_blk_tov = 4};

	r->fd = packet_socket(name, 0);
	/* SO_TIMESTAMPNS: stamped as it comes to the interface, not when this socket is served. */
	if (setsockopt(r->fd, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof(on)) ||
		setsockopt(r->fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof(filter)) ||
		setsockopt(r->fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &ignore, sizeof(ignore)) ||
		setsockopt(r->fd, SOL_PACKET, PACKET_VERSION, &version, sizeof(version)) ||
		setsockopt(r->fd, SOL_PACKET, PACKET_RX_RING, &req, sizeof(req)))
		die("receive ring");
	r->map = mmap(NULL, (size_t)BLOCK * BLOCKS, PROT_READ | PROT_WRITE, MAP_SHARED, r->fd, 0);
	if (r->map == MAP_FAILED)
		die("receive ring");
	close(packet_socket(name, 0)); /* the device is there */
	/* All protocols: those sockets are served before the ingress hook, where whoever measures
	 * may drop what has no other receiver. */
	struct sockaddr_ll sa = {.sll_family = AF_PACKET,
		.sll_protocol = htons(ETH_P_ALL),
		.sll_ifindex = (int)if_nametoindex(name)};
	if (bind(r->fd, (struct sockaddr *)&sa, sizeof(sa)))
		die(name);
}

static void block(struct tpacket_block_desc *b)
{
	struct tpacket3_hdr *h = (void *)((uint8_t *)b + b->hdr.bh1.offset_to_first_pkt);

	for (uint32_t i = 0; i < b->hdr.bh1.num_pkts; i++) {
		const struct sockaddr_ll *sa = (void *)((uint8_t *)h + TPACKET_ALIGN(sizeof(*h)));
		uint64_t t_ns = (uint64_t)h->tp_sec * NS_PER_SEC + h->tp_nsec;

		if (sa->sll_pkttype == PACKET_OUTGOING)
			leave((uint8_t *)h + h->tp_mac, h->tp_snaplen, t_ns);
		else
			take((uint8_t *)h + h->tp_mac, h->tp_snaplen, t_ns);
		h = (void *)((uint8_t *)h + h->tp_next_offset);
	}
}

static void *receive(void *arg)
{
	struct ring *r = arg;
	struct pollfd p = {.fd = r->fd, .events = POLLIN};
	struct tpacket_stats_v3 stats;
	socklen_t len = sizeof(stats);
	unsigned at = 0;

	while (!atomic_load(&stop_receiving)) {
		struct tpacket_block_desc *b = (void *)(r->map + (size_t)at * BLOCK);

		if (!(__atomic_load_n(&b->hdr.bh1.block_status, __ATOMIC_ACQUIRE) &
			    TP_STATUS_USER)) {
			poll(&p, 1, 20);
			continue;
		}
		block(b);
		__atomic_store_n(&b->hdr.bh1.block_status, TP_STATUS_KERNEL, __ATOMIC_RELEASE);
		at = (at + 1) % BLOCKS;
	}
	if (getsockopt(r->fd, SOL_PACKET, PACKET_STATISTICS, &stats, &len) == 0)
		total.overruns = stats.tp_drops;
	return NULL;
}

static int by_value(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

/* Of sorted delays: the least one that so many of a thousand do not exceed, in microseconds. */
static double quantile_us(const uint32_t *sorted, size_t n, unsigned permille)
{
	return n ? sorted[(n * permille + 999) / 1000 - 1] / 1e3 : 0;
}

/* The whole distribution, to be drawn: [per mille, microseconds]. */
static void report_distribution(size_t n)
{
	static const unsigned at[] = {
		1, 10, 50, 100, 250, 500, 750, 900, 950, 980, 990, 995, 998, 999, 1000};

	for (size_t i = 0; i < ARRAY_LEN(at); i++)
		printf("%s[%u,%.1f]", i ? "," : "\"distribution\":[", at[i],
			quantile_us(delay, n, at[i]));
	printf("]");
}

/* The processors' time since the machine started that was not idle, in nanoseconds. The timers'
 * list has the idle time exactly; /proc/stat has it in hundredths of a second. */
static double busy_ns(void)
{
	FILE *f = fopen("/proc/timer_list", "re");
	double busy = 0, idle;
	char line[256];

	if (!f)
		die("/proc/timer_list");
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, " .idle_sleeptime : %lf nsecs", &idle) == 1)
			busy += (double)clock_mono_ns() - idle;
	fclose(f);
	return busy;
}

static void report(double seconds, double busy_us)
{
	const struct hist *own[] = {&behind};
	struct hist_summary b;
	uint64_t lost = total.sent > total.received ? total.sent - total.received : 0;
	size_t n = delays;

	qsort(delay, n, sizeof(*delay), by_value);
	qsort(from_call, n, sizeof(*from_call), by_value);
	hist_summarise(&b, own, 1);
	printf("{\"legs\":%u,\"seconds\":%.3f,\"sent\":%llu,\"received\":%llu,\"lost\":%llu,\"reordered\":%llu,\"duplicates\":%llu,"
	       "\"wrong\":%llu,\"bad_auth\":%llu,\"sampled\":%llu,\"send_errors\":%llu,\"late\":%llu,\"overruns\":%llu,"
	       "\"p50_us\":%.1f,\"p90_us\":%.1f,\"p99_us\":%.1f,\"p999_us\":%.1f,\"max_us\":%.1f,"
	       "\"call_p50_us\":%.1f,\"call_p99_us\":%.1f,\"unstamped\":%llu,"
	       "\"behind_p99_us\":%.1f,\"bursts\":%llu,\"busy_us\":%.3f,",
		leg_count, seconds, (unsigned long long)total.sent,
		(unsigned long long)total.received, (unsigned long long)lost,
		(unsigned long long)total.reordered, (unsigned long long)total.duplicates,
		(unsigned long long)total.wrong, (unsigned long long)total.bad_auth,
		(unsigned long long)total.sampled, (unsigned long long)total.send_errors,
		(unsigned long long)total.late, (unsigned long long)total.overruns,
		quantile_us(delay, n, 500), quantile_us(delay, n, 900), quantile_us(delay, n, 990),
		quantile_us(delay, n, 999), quantile_us(delay, n, 1000),
		quantile_us(from_call, n, 500), quantile_us(from_call, n, 990),
		(unsigned long long)(total.received - n), (double)b.p99 / 1e3,
		(unsigned long long)total.bursts, busy_us);
	report_distribution(n);
	printf("}\n");
}

static struct {
	double burst_us;
	useconds_t drain_ms;
	bool busy;
} opt = {.burst_us = 50, .drain_ms = 500};

static bool word(const char *name, const char *value)
{
	if (strcmp(name, "sample") == 0)
		sample = atoi(value) > 0 ? (uint32_t)atoi(value) : sample;
	else if (strcmp(name, "payload") == 0)
		payload = (uint32_t)atoi(value);
	else if (strcmp(name, "burst-us") == 0)
		opt.burst_us = atof(value);
	else if (strcmp(name, "drain-ms") == 0)
		opt.drain_ms = (useconds_t)atoi(value);
	else if (strcmp(name, "stamps") == 0)
		stamp_leaving = strcmp(value, "call") != 0;
	else if (strcmp(name, "skip") == 0)
		skip = (uint32_t)atoi(value);
	else if (strcmp(name, "receiver") == 0)
		receiver = value;
	else if (strcmp(name, "tags") == 0)
		plus = load_tags_scheme(value);
	else if (strcmp(name, "busy") == 0)
		opt.busy = strcmp(value, "yes") == 0;
	else
		return false;
	return true;
}

static void words(int argc, char **argv)
{
	for (int i = 6; i < argc; i++) {
		char *equals = strchr(argv[i], '=');

		if (equals)
			*equals = 0;
		if (!equals || !word(argv[i], equals + 1)) {
			fprintf(stderr, "srtpload: unknown word %s\n", argv[i]);
			exit(2);
		}
	}
	if (payload < 1 || payload > PAYLOAD_MAX) {
		fprintf(stderr, "srtpload: payload must be 1 to %d bytes\n", PAYLOAD_MAX);
		exit(2);
	}
}

/* An instruction without effect, at which t/kernel/count.c begins (1) or ends (2) to count. */
#if defined(__x86_64__)
#define MARK(which) __asm__ volatile(".byte 0x0f,0x1f,0x84,0x00,0x78,0x56,0x34," which)
#else
#define MARK(which) (void)0
#endif

static void run(double rate)
{
	struct ring ring;
	pthread_t thread;
	uint64_t start, took;
	double busy;
	int fd;

	frames_make();
	ring_open(&ring, receiver ? receiver : device);
	fd = packet_socket(device, 0);
	prctl(PR_SET_TIMERSLACK, 1000ul, 0, 0, 0);
	if (pthread_create(&thread, NULL, receive, &ring))
		die("thread");
	busy = opt.busy ? busy_ns() : 0;
	if (opt.busy)
		MARK("0x01");
	start = clock_mono_ns();
	send_all(fd, rate, (uint64_t)(opt.burst_us * 1000));
	took = clock_mono_ns() - start;
	usleep(opt.drain_ms * 1000);
	if (opt.busy)
		MARK("0x02");
	busy = opt.busy ? busy_ns() - busy : 0;
	atomic_store(&stop_receiving, true);
	pthread_join(thread, NULL);
	report((double)took / 1e9, busy / 1e3);
}

int main(int argc, char **argv)
{
	double rate, seconds;

	if (argc < 6 || (rate = atof(argv[4])) <= 0 || (seconds = atof(argv[5])) <= 0) {
		fprintf(stderr,
			"usage: srtpload DEVICE GATEWAY-IP SPEC RATE SECONDS [NAME=VALUE...]\n");
		return 2;
	}
	device = argv[1];
	words(argc, argv);
	leg_count = spec_read(argv[3], add_leg);
	per_leg = (uint32_t)(rate * seconds);
	per_leg = per_leg ? per_leg : 1;
	mac_of(device, mac_own);
	if (receiver)
		mac_of(receiver, mac_gateway);
	else
		find_gateway(argv[2]);
	run(rate);
	return 0;
}
