/* SPDX-License-Identifier: GPL-2.0-or-later */
/* NFQUEUE over netlink, with libmnl's message builders. System calls are our own, because the
 * libraries receive one packet at a time. Knows netlink, neither UDP nor media. GSO: the kernel
 * delivers packets without computing checksums or splitting joined datagrams. FAIL_OPEN unless
 * closed: with the queue full, packets pass to the ordinary socket. A closed queue is bounded by
 * its socket buffer, because only sockets report their losses. */
#include "steer/nfqueue/queue.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_queue.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"

#define RECEIVE_BUFFER \
	(32 << 20) /* a tenth of a second of 200,000 packets/s, at 1.5 KiB of kernel memory each */
#define RECEIVE_BUFFER_CLOSED (8 << 20) /* some 20,000 packets of voice */
#define QUEUE_LEN             16384u
#define QUEUE_LEN_CLOSED      (1u << 20) /* never */

/* Messages per system call. A socket may send 208 KiB at once, unless net.core.wmem_default was
 * changed. */
#define SEND_TOGETHER     64u   /* about 16 KiB */
#define VERDICTS_TOGETHER 1024u /* 32 KiB */

/* --- Open ------------------------------------------------------------------------------------- */

static struct nlmsghdr *message(void *buf, uint16_t num, int type, uint16_t flags)
{
	struct nlmsghdr *h = mnl_nlmsg_put_header(buf);
	struct nfgenmsg *g;

	h->nlmsg_type = (uint16_t)(NFNL_SUBSYS_QUEUE << 8 | type);
	h->nlmsg_flags = NLM_F_REQUEST | flags;
	g = mnl_nlmsg_put_extra_header(h, sizeof(*g));
	g->nfgen_family = AF_UNSPEC;
	g->version = NFNETLINK_V0;
	g->res_id = htons(num);
	return h;
}

/* Sends a configuration message and waits for its answer. Packets received before are skipped;
 * closing the queue decides them. */
static int ask(int fd, const struct nlmsghdr *h)
{
	char buf[8192];
	const struct nlmsghdr *r = (const struct nlmsghdr *)buf;

	if (send(fd, h, h->nlmsg_len, 0) < 0)
		return -errno;
	for (;;) {
		ssize_t n = recv(fd, buf, sizeof(buf), 0);

		if (n < 0 && errno != EINTR)
			return -errno;
		if (n >= (ssize_t)(NLMSG_HDRLEN + sizeof(int)) && r->nlmsg_type == NLMSG_ERROR)
			return ((const struct nlmsgerr *)mnl_nlmsg_get_payload(r))->error;
	}
}

static int bind_queue(int fd, uint16_t num, uint32_t copy, bool closed)
{
	struct nfqnl_msg_config_cmd cmd = {.command = NFQNL_CFG_CMD_BIND};
	struct nfqnl_msg_config_params params = {htonl(copy), NFQNL_COPY_PACKET};
	uint32_t mask = NFQA_CFG_F_GSO | NFQA_CFG_F_FAIL_OPEN;
	uint32_t flags = closed ? NFQA_CFG_F_GSO : mask;
	uint32_t maxlen = closed ? QUEUE_LEN_CLOSED : QUEUE_LEN;
	_Alignas(struct nlmsghdr) char buf[256];
	struct nlmsghdr *h;
	int err;

	h = message(buf, num, NFQNL_MSG_CONFIG, NLM_F_ACK);
	mnl_attr_put(h, NFQA_CFG_CMD, sizeof(cmd), &cmd);
	err = ask(fd, h);
	if (err)
		return err;
	/* Enables copying last, in one message with the flags, so that the first packet has all
	 * settings. */
	h = message(buf, num, NFQNL_MSG_CONFIG, NLM_F_ACK);
	mnl_attr_put_u32(h, NFQA_CFG_QUEUE_MAXLEN, htonl(maxlen));
	mnl_attr_put_u32(h, NFQA_CFG_FLAGS, htonl(flags));
	mnl_attr_put_u32(h, NFQA_CFG_MASK, htonl(mask));
	mnl_attr_put(h, NFQA_CFG_PARAMS, sizeof(params), &params);
	return ask(fd, h);
}

int queue_open(uint16_t num, uint32_t copy, bool closed)
{
	struct sockaddr_nl local = {.nl_family = AF_NETLINK};
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER);
	int on = 1, len = closed ? RECEIVE_BUFFER_CLOSED : RECEIVE_BUFFER, err = 0;

	if (fd < 0)
		return -errno;
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &len, sizeof(len)))
		(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &len, sizeof(len));
	(void)setsockopt(fd, SOL_NETLINK, NETLINK_NO_ENOBUFS, &on, sizeof(on));
	if (bind(fd, (struct sockaddr *)&local, sizeof(local)))
		err = -errno;
	err = err ? err : bind_queue(fd, num, copy, closed);
	if (err) {
		close(fd);
		return err;
	}
	return fd;
}

/* --- Packets ---------------------------------------------------------------------------------- */

/* The value of an attribute. Inline, because libmnl needs four calls to read one
 * (notes/steering.md). */
struct value {
	const uint8_t *p;
	uint32_t len;
};

static inline uint32_t get_be32(struct value v)
{
	return v.len >= 4 ? be32(v.p) : 0;
}

static inline uint64_t get_time(struct value v)
{
	struct nfqnl_msg_packet_timestamp t;

	if (v.len < sizeof(t))
		return 0;
	memcpy(&t, v.p, sizeof(t));
	return be64toh(t.sec) * NS_PER_SEC + be64toh(t.usec) * 1000;
}

int queue_parse(struct queue_packet *out, const void *msg, size_t len)
{
	const struct nlmsghdr *h = msg;
	const uint8_t *at, *end;
	struct nfqnl_msg_packet_hdr head;
	struct queue_packet p = {0};
	uint32_t info = 0;
	bool found = false;

	if (len > INT32_MAX || !mnl_nlmsg_ok(h, (int)len) ||
		h->nlmsg_type != (NFNL_SUBSYS_QUEUE << 8 | NFQNL_MSG_PACKET) ||
		h->nlmsg_len < NLMSG_HDRLEN + sizeof(struct nfgenmsg))
		return -EBADMSG;
	at = (const uint8_t *)msg + NLMSG_HDRLEN + sizeof(struct nfgenmsg);
	end = (const uint8_t *)msg + h->nlmsg_len;
	for (struct nlattr a; end - at >= (ptrdiff_t)sizeof(a); at += NLA_ALIGN(a.nla_len)) {
		struct value v;

		memcpy(&a, at, sizeof(a));
		if (a.nla_len < sizeof(a) || a.nla_len > end - at)
			break;
		v = (struct value){at + sizeof(a), (uint32_t)(a.nla_len - sizeof(a))};
		switch (a.nla_type & NLA_TYPE_MASK) {
		case NFQA_PACKET_HDR:
			found = v.len >= sizeof(head);
			memcpy(&head, v.p, found ? sizeof(head) : 0);
			p.id = found ? get_be32(v) : 0;
			p.routed = found && head.hook != NF_INET_PRE_ROUTING;
			break;
		case NFQA_IFINDEX_INDEV:
			p.dev = get_be32(v);
			break;
		case NFQA_PAYLOAD:
			p.ip = v.p;
			p.have = v.len;
			break;
		case NFQA_CAP_LEN:
			p.whole = get_be32(v);
			break;
		case NFQA_SKB_INFO:
			info = get_be32(v);
			break;
		case NFQA_TIMESTAMP:
			p.t_ns = get_time(v);
			break;
		}
	}
	if (!found)
		return -EBADMSG;
	p.whole = p.whole > p.have ? p.whole : p.have;
	p.gso = info & NFQA_SKB_GSO;
	p.verify = info & NFQA_SKB_CSUM_NOTVERIFIED;
	*out = p;
	return 0;
}

/* --- Verdicts --------------------------------------------------------------------------------- */

static void put_verdict(struct queue_verdicts *v, int type, uint32_t id, uint32_t verdict)
{
	struct nfqnl_msg_verdict_hdr vh = {htonl(verdict), htonl(id)};

	if (v->n == v->max)
		return;
	mnl_attr_put(message(v->buf + (size_t)v->n++ * QUEUE_VERDICT_LEN, v->num, type, 0),
		NFQA_VERDICT_HDR, sizeof(vh), &vh);
}

uint32_t queue_replace(uint8_t *ip, uint32_t ip_len, uint16_t num, uint32_t id, uint32_t mark)
{
	struct {
		struct nlmsghdr h;
		struct nfgenmsg g;
		struct nlattr verdict_attr;
		struct nfqnl_msg_verdict_hdr verdict;
	} m = {
		.h = {.nlmsg_type = NFNL_SUBSYS_QUEUE << 8 | NFQNL_MSG_VERDICT,
			.nlmsg_flags = NLM_F_REQUEST},
		.g = {.version = NFNETLINK_V0, .res_id = htons(num)},
		.verdict_attr = {sizeof(m.verdict_attr) + sizeof(m.verdict), NFQA_VERDICT_HDR},
		.verdict = {htonl(NF_ACCEPT), htonl(id)},
	};
	struct {
		struct nlattr attr;
		uint32_t mark;
	} k = {{sizeof(k), NFQA_MARK}, htonl(mark)};
	struct nlattr payload = {(uint16_t)(sizeof(payload) + ip_len), NFQA_PAYLOAD};
	_Static_assert(
		sizeof(m) + sizeof(payload) == QUEUE_REPLACE_LEN - QUEUE_MARK_LEN, "no holes");
	_Static_assert(sizeof(k) == QUEUE_MARK_LEN, "no holes");
	uint8_t *at = ip - sizeof(payload);

	memcpy(at, &payload, sizeof(payload));
	if (mark)
		memcpy(at -= sizeof(k), &k, sizeof(k));
	at -= sizeof(m);
	m.h.nlmsg_len = (uint32_t)(ip + ip_len - at);
	memcpy(at, &m, sizeof(m));
	return m.h.nlmsg_len;
}

void queue_accept(struct queue_verdicts *v, uint32_t id)
{
	put_verdict(v, NFQNL_MSG_VERDICT, id, NF_ACCEPT);
}

void queue_drop_up_to(struct queue_verdicts *v, uint32_t id)
{
	put_verdict(v, NFQNL_MSG_VERDICT_BATCH, id, NF_DROP);
}

uint32_t queue_send(int fd, struct iovec *message, uint32_t n)
{
	uint32_t calls = 0, at = 0, together = SEND_TOGETHER;

	while (at < n) {
		struct msghdr m = {
			.msg_iov = message + at, .msg_iovlen = min_u32(n - at, together)};

		calls++;
		if (sendmsg(fd, &m, 0) >= 0) {
			at += (uint32_t)m.msg_iovlen;
		} else if (errno != EINTR) {
			/* All failed: perhaps too many for the socket buffer. */
			if (m.msg_iovlen == 1)
				message[at++].iov_len = 0;
			together = 1;
		}
	}
	return calls;
}

int queue_flush(struct queue_verdicts *v, int fd)
{
	int err = 0;

	for (uint32_t at = 0; at < v->n;) {
		uint32_t part = min_u32(v->n - at, VERDICTS_TOGETHER);

		if (send(fd, v->buf + (size_t)at * QUEUE_VERDICT_LEN,
			    (size_t)part * QUEUE_VERDICT_LEN, 0) < 0) {
			if (errno == EINTR)
				continue;
			err = -errno;
		}
		at += part;
	}
	v->n = 0;
	return err;
}
