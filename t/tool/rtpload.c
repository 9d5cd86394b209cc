/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Terminals for tests and benchmarks: sends and receives RTP, SRTP, RTCP and SRTCP for many legs at
 * once, built on libsrtp2 so that nothing of ours checks itself. Legs 2k and 2k+1 talk to each
 * other through the relay. Every packet carries who sent it, its number and when; the receiver
 * decrypts every one and checks content, order, loss and delay.
 *
 *   rtpload SPEC RATE SECONDS [PAYLOAD]
 *
 * SPEC: see spec.h. A suite is an SDES name, 80, 32 or plain. UNENCRYPTED_SRTP, UNENCRYPTED_SRTCP,
 * UNAUTHENTICATED_SRTP, MKI, SWITCH=PACKET and RENEW=PACKET may follow, each after a ','. A key is
 * key and salt in hexadecimal; a second one may follow after a ','. RATE: packets per second and
 * leg. SIGUSR1 ends it early. One JSON object on standard output. */
#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <srtp2/srtp.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/hist.h"
#include "spec.h"

#define MAGIC       0x78636970u
#define HDR_LEN     12
#define MIN_PAYLOAD 20
#define MAX_PAYLOAD 1400
#define RTCP_LEN    28
#define MAX_KEYS    2
#define DRAIN_STEPS 600 /* of 10 ms, without anything of what is still under way */
#define DRAIN_MORE  6   /* extra time after all packets arrived, to detect duplicates */
#define DRAIN_MAX   3000

struct keying {
	bool mki;           /* packets carry one */
	uint32_t switch_at; /* the second key is sent under from this packet on; 0 = never */
	/* likewise, but as a new session: nothing tells the keys apart, the ROC is 0 again */
	uint32_t renew_at;
};

struct leg {
	int rtp_fd, rtcp_fd;
	struct sockaddr_in rtp_to, rtcp_to;
	srtp_t tx, rx, tx_next; /* NULL: plain */
	struct keying tx_keys, rx_keys;
	uint32_t id;
	uint16_t seq;
	uint32_t sent; /* packets, by the sending thread */
	uint32_t next; /* number expected, by the receiving thread */
	uint32_t received;
};

static struct leg *legs;
static uint32_t leg_count, payload_len = 160;
static atomic_bool stop_receiving, enough;
static atomic_ullong arrived; /* datagrams, whatever they are */
static struct {
	uint64_t sent, send_errors, rtcp_sent;                                    /* sender */
	uint64_t received, reordered, duplicates, wrong, bad_auth, rtcp_received; /* receiver */
} total;
static struct hist delay;

static void die(const char *what)
{
	fprintf(stderr, "rtpload: %s: %s\n", what, strerror(errno));
	exit(2);
}

/* --- Set-up ----------------------------------------------------------------------------------- */

static int socket_at(const char *ip, unsigned port)
{
	struct sockaddr_in sa = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), size = 1 << 20;

	inet_pton(AF_INET, ip, &sa.sin_addr);
	if (fd < 0 || bind(fd, (struct sockaddr *)&sa, sizeof(sa)))
		die("bind");
	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	return fd;
}

static struct sockaddr_in address(const char *ip, unsigned port)
{
	struct sockaddr_in sa = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};

	if (inet_pton(AF_INET, ip, &sa.sin_addr) != 1)
		die("address");
	return sa;
}

/* Suites that libsrtp2 as Debian builds it can do right. A 32-bit tag is for SRTP only. */
static const struct suite_row {
	const char *name, *alias;
	void (*set)(srtp_crypto_policy_t *);
	int key_len, tag_len;
} suites[] = {
	{"80", "AES_CM_128_HMAC_SHA1_80", srtp_crypto_policy_set_rtp_default, 30, 10},
	{"32", "AES_CM_128_HMAC_SHA1_32", srtp_crypto_policy_set_rtp_default, 30, 4},
	{"", "AES_256_CM_HMAC_SHA1_80", srtp_crypto_policy_set_aes_cm_256_hmac_sha1_80, 46, 10},
	{"", "AES_256_CM_HMAC_SHA1_32", srtp_crypto_policy_set_aes_cm_256_hmac_sha1_80, 46, 4},
	{"", "AEAD_AES_128_GCM", srtp_crypto_policy_set_aes_gcm_128_16_auth, 28, 16},
	{"", "AEAD_AES_256_GCM", srtp_crypto_policy_set_aes_gcm_256_16_auth, 44, 16},
	{"", "NULL_HMAC_SHA1_80", srtp_crypto_policy_set_null_cipher_hmac_sha1_80, 30, 10},
	{"", "NULL_HMAC_SHA1_32", srtp_crypto_policy_set_null_cipher_hmac_sha1_80, 30, 4},
};

static const struct suite_row *suite_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(suites); i++)
		if (strcmp(name, suites[i].name) == 0 || strcmp(name, suites[i].alias) == 0)
			return &suites[i];
	fprintf(stderr, "rtpload: suite %s is unknown\n", name);
	exit(2);
}

/* Applies the session parameters after the suite's name, with "," between them. */
static void apply_params(srtp_policy_t *policy, struct keying *k, char *text)
{
	char *save = NULL;

	for (char *p = strtok_r(text, ",", &save); p; p = strtok_r(NULL, ",", &save)) {
		if (strcmp(p, "UNENCRYPTED_SRTP") == 0) {
			policy->rtp.sec_serv = sec_serv_auth;
		} else if (strcmp(p, "UNENCRYPTED_SRTCP") == 0) {
			policy->rtcp.sec_serv = sec_serv_auth;
		} else if (strcmp(p, "UNAUTHENTICATED_SRTP") == 0) {
			srtp_crypto_policy_set_aes_cm_128_null_auth(&policy->rtp);
		} else if (strcmp(p, "MKI") == 0) {
			k->mki = true;
		} else if (sscanf(p, "SWITCH=%u", &k->switch_at) != 1 &&
			sscanf(p, "RENEW=%u", &k->renew_at) != 1) {
			fprintf(stderr, "rtpload: parameter %s is unknown\n", p);
			exit(2);
		}
	}
}

/* Keys of the suite with ',' between; with an MKI, the n-th has n in four bytes. */
static srtp_t session(struct keying *k, char *suite, char *hex, srtp_ssrc_type_t direction)
{
	unsigned max = MAX_KEYS;
	uint8_t key[MAX_KEYS][46], mki[MAX_KEYS][4];
	srtp_master_key_t master[MAX_KEYS], *masters[MAX_KEYS];
	srtp_policy_t policy = {.ssrc = {.type = direction}, .keys = masters, .window_size = 1024};
	char *params = strchr(suite, ','), *save = NULL;
	const struct suite_row *row;
	srtp_t s;

	if (strcmp(suite, "plain") == 0)
		return NULL;
	if (params)
		*params++ = 0;
	row = suite_find(suite);
	row->set(&policy.rtp);
	row->set(&policy.rtcp);
	policy.rtp.auth_tag_len = row->tag_len;
	if (params)
		apply_params(&policy, k, params);
	if (k->renew_at)
		max = 1;
	for (char *h = strtok_r(hex, ",", &save); h && policy.num_master_keys < max;
		h = strtok_r(NULL, ",", &save)) {
		unsigned long n = policy.num_master_keys++;

		spec_key(key[n], row->key_len, h);
		put_be32(mki[n], (uint32_t)n + 1);
		master[n] = (srtp_master_key_t){
			.key = key[n], .mki_id = mki[n], .mki_size = k->mki ? 4 : 0};
		masters[n] = &master[n];
	}
	if (srtp_create(&s, &policy) != srtp_err_status_ok)
		die("srtp_create");
	return s;
}

static void add_leg(uint32_t n, struct spec_leg *s)
{
	struct leg *l;
	char again[128], *second;

	legs = spec_grow(legs, n, sizeof(*legs));
	l = &legs[n];
	*l = (struct leg){
		.id = n, .rtp_fd = socket_at(s->ip, s->rtp), .rtcp_fd = socket_at(s->ip, s->rtcp)};
	l->rtp_to = address(s->to_ip, s->to_rtp);
	l->rtcp_to = address(s->to_ip, s->to_rtcp);
	/* session() cuts suite and keys into words */
	memcpy(again, s->tx_suite, sizeof(again));
	second = strchr(s->tx_key, ',');
	second = strdup(second ? second + 1 : s->tx_key);
	if (!second)
		die("memory");
	l->tx = session(&l->tx_keys, s->tx_suite, s->tx_key, ssrc_any_outbound);
	if (l->tx_keys.renew_at)
		l->tx_next = session(&l->tx_keys, again, second, ssrc_any_outbound);
	free(second);
	l->rx = session(&l->rx_keys, s->rx_suite, s->rx_key, ssrc_any_inbound);
	l->seq = (uint16_t)(65530 - n % 7); /* every leg rolls over soon */
}

/* --- Sending ---------------------------------------------------------------------------------- */

static void fill(uint8_t *p, uint32_t len, uint32_t leg, uint32_t number)
{
	for (uint32_t i = 0; i < len; i++)
		p[i] = (uint8_t)(leg * 31 + number * 7 + i);
}

static unsigned key_in_use(const struct leg *l)
{
	return l->tx_keys.switch_at && l->sent >= l->tx_keys.switch_at ? 1 : 0;
}

static void renew(struct leg *l)
{
	srtp_dealloc(l->tx);
	l->tx = l->tx_next;
	l->tx_next = NULL;
}

static void send_rtp(struct leg *l)
{
	uint8_t b[HDR_LEN + MAX_PAYLOAD + 64], *p = b + HDR_LEN;
	uint64_t now;
	int len = (int)(HDR_LEN + payload_len);

	if (l->tx_next && l->sent == l->tx_keys.renew_at)
		renew(l);
	b[0] = 0x80;
	b[1] = 0;
	put_be16(b + 2, l->seq);
	put_be32(b + 4, l->sent * 160);
	put_be32(b + 8, 0x10000000 + l->id);
	put_be32(p, MAGIC);
	put_be32(p + 4, l->id);
	put_be32(p + 8, l->sent);
	fill(p + MIN_PAYLOAD, payload_len - MIN_PAYLOAD, l->id, l->sent);
	now = clock_mono_ns();
	memcpy(p + 12, &now, 8);
	if (l->tx &&
		srtp_protect_mki(l->tx, b, &len, l->tx_keys.mki, key_in_use(l)) !=
			srtp_err_status_ok)
		die("srtp_protect");
	l->seq++;
	l->sent++;
	total.sent++;
	if (sendto(l->rtp_fd, b, (size_t)len, 0, (struct sockaddr *)&l->rtp_to,
		    sizeof(l->rtp_to)) != len)
		total.send_errors++;
}

static void send_rtcp(struct leg *l)
{
	uint8_t b[RTCP_LEN + 64] = {0x80, 200, 0, 6};
	int len = RTCP_LEN;

	put_be32(b + 4, 0x10000000 + l->id);
	put_be32(b + 8, MAGIC);
	put_be32(b + 12, l->id);
	if (l->tx &&
		srtp_protect_rtcp_mki(l->tx, b, &len, l->tx_keys.mki, key_in_use(l)) !=
			srtp_err_status_ok)
		die("srtp_protect_rtcp");
	total.rtcp_sent++;
	if (sendto(l->rtcp_fd, b, (size_t)len, 0, (struct sockaddr *)&l->rtcp_to,
		    sizeof(l->rtcp_to)) != len)
		total.send_errors++;
}

/* Each leg's packets are evenly spaced, and the legs spread over the interval, as terminals' are.
 */
static void send_all(double rate, double seconds)
{
	uint64_t start = clock_mono_ns(), interval = (uint64_t)(1e9 / rate);
	uint32_t per_leg = (uint32_t)(rate * seconds);
	uint32_t rtcp_every = rate >= 1 ? (uint32_t)rate : 1;

	for (uint32_t i = 0; i < per_leg && !atomic_load(&enough); i++)
		for (uint32_t k = 0; k < leg_count; k++) {
			uint64_t due = start + i * interval + interval * k / leg_count;
			struct timespec ts = {(time_t)(due / NS_PER_SEC), (long)(due % NS_PER_SEC)};

			if (clock_mono_ns() < due)
				clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL);
			send_rtp(&legs[k]);
			if (i % rtcp_every == rtcp_every / 2)
				send_rtcp(&legs[k]);
		}
}

/* --- Receiving -------------------------------------------------------------------------------- */

static void check_rtp(struct leg *l, uint8_t *b, int len, uint64_t now)
{
	uint8_t want[MAX_PAYLOAD];
	const uint8_t *p = b + HDR_LEN;
	uint32_t number;
	uint64_t then;

	if (l->rx && srtp_unprotect_mki(l->rx, b, &len, l->rx_keys.mki) != srtp_err_status_ok) {
		total.bad_auth++;
		return;
	}
	if (len != (int)(HDR_LEN + payload_len) || be32(p) != MAGIC || be32(p + 4) != (l->id ^ 1)) {
		total.wrong++;
		return;
	}
	number = be32(p + 8);
	fill(want, payload_len - MIN_PAYLOAD, l->id ^ 1, number);
	if (memcmp(want, p + MIN_PAYLOAD, payload_len - MIN_PAYLOAD) != 0) {
		total.wrong++;
		return;
	}
	if (number + 1 == l->next)
		total.duplicates++;
	else if (number < l->next)
		total.reordered++;
	else
		l->next = number + 1;
	l->received++;
	total.received++;
	memcpy(&then, p + 12, 8);
	hist_add(&delay, now - then);
}

static void check_rtcp(struct leg *l, uint8_t *b, int len)
{
	if (l->rx && srtp_unprotect_rtcp_mki(l->rx, b, &len, l->rx_keys.mki) != srtp_err_status_ok)
		total.bad_auth++;
	else if (len != RTCP_LEN || be32(b + 8) != MAGIC || be32(b + 12) != (l->id ^ 1))
		total.wrong++;
	else
		total.rtcp_received++;
}

static void drain(struct leg *l, bool rtcp)
{
	uint8_t b[2048];
	ssize_t len;

	while ((len = recv(rtcp ? l->rtcp_fd : l->rtp_fd, b, sizeof(b), 0)) > 0) {
		uint64_t now = clock_mono_ns();

		atomic_fetch_add_explicit(&arrived, 1, memory_order_relaxed);
		if (len >= 2 && b[1] >= 192 && b[1] <= 223)
			check_rtcp(l, b, (int)len);
		else
			check_rtp(l, b, (int)len, now);
	}
}

static void *receive(void *arg)
{
	int ep = *(int *)arg;
	struct epoll_event ev[64];

	while (!atomic_load(&stop_receiving)) {
		int n = epoll_wait(ep, ev, 64, 50);

		for (int i = 0; i < n; i++)
			drain(&legs[ev[i].data.u64 >> 1], ev[i].data.u64 & 1);
	}
	return NULL;
}

static void watch(int ep, int fd, uint64_t data)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.u64 = data};

	if (epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev))
		die("epoll");
}

static void wait_for_the_rest(void)
{
	const struct timespec step = {0, 10000000};
	uint64_t last = atomic_load(&arrived);
	unsigned more = 0, without = 0;

	/* A relay that is behind, on a busy machine, still delivers. */
	for (unsigned i = 0; i < DRAIN_MAX && without < DRAIN_STEPS && more < DRAIN_MORE; i++) {
		uint64_t now;

		nanosleep(&step, NULL);
		now = atomic_load(&arrived);
		without = now == last ? without + 1 : 0;
		last = now;
		if (now >= total.sent + total.rtcp_sent)
			more++;
	}
}

static void on_enough(int number)
{
	(void)number;
	atomic_store(&enough, true);
}

static void report(double seconds)
{
	const struct hist *one[] = {&delay};
	struct hist_summary s;
	uint64_t lost = total.sent > total.received ? total.sent - total.received : 0;

	hist_summarise(&s, one, 1);
	printf("{\"legs\":%u,\"seconds\":%.2f,\"sent\":%llu,\"received\":%llu,\"lost\":%llu,\"reordered\":%llu,\"duplicates\":%llu,"
	       "\"wrong\":%llu,\"bad_auth\":%llu,\"send_errors\":%llu,\"rtcp_sent\":%llu,\"rtcp_received\":%llu,"
	       "\"p50_us\":%.1f,\"p90_us\":%.1f,\"p99_us\":%.1f,\"max_us\":%.1f}\n",
		leg_count, seconds, (unsigned long long)total.sent,
		(unsigned long long)total.received, (unsigned long long)lost,
		(unsigned long long)total.reordered, (unsigned long long)total.duplicates,
		(unsigned long long)total.wrong, (unsigned long long)total.bad_auth,
		(unsigned long long)total.send_errors, (unsigned long long)total.rtcp_sent,
		(unsigned long long)total.rtcp_received, (double)s.p50 / 1e3, (double)s.p90 / 1e3,
		(double)s.p99 / 1e3, (double)s.max / 1e3);
}

int main(int argc, char **argv)
{
	struct rlimit files = {1 << 20, 1 << 20};
	pthread_t thread;
	double rate, seconds;
	int ep;

	if (argc < 4 || (rate = atof(argv[2])) <= 0 || (seconds = atof(argv[3])) <= 0) {
		fprintf(stderr, "usage: rtpload SPEC RATE SECONDS [PAYLOAD]\n");
		return 2;
	}
	if (argc > 4)
		payload_len = (uint32_t)atoi(argv[4]);
	if (payload_len < MIN_PAYLOAD || payload_len > MAX_PAYLOAD ||
		srtp_init() != srtp_err_status_ok)
		die("payload must be 20 to 1400 bytes");
	setrlimit(RLIMIT_NOFILE, &files);
	signal(SIGUSR1, on_enough);
	leg_count = spec_read(argv[1], add_leg);
	ep = epoll_create1(EPOLL_CLOEXEC);
	for (uint32_t k = 0; k < leg_count; k++) {
		watch(ep, legs[k].rtp_fd, (uint64_t)k << 1);
		watch(ep, legs[k].rtcp_fd, (uint64_t)k << 1 | 1);
	}
	if (pthread_create(&thread, NULL, receive, &ep))
		die("thread");
	send_all(rate, seconds);
	wait_for_the_rest();
	atomic_store(&stop_receiving, true);
	pthread_join(thread, NULL);
	report(seconds);
	for (uint32_t k = 0; k < leg_count; k++) {
		if (legs[k].tx)
			srtp_dealloc(legs[k].tx);
		if (legs[k].rx)
			srtp_dealloc(legs[k].rx);
		if (legs[k].tx_next)
			srtp_dealloc(legs[k].tx_next);
	}
	free(legs);
	return 0;
}
