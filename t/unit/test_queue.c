/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Messages of netfilter's queue, read and written by hand (steer/nfqueue/queue.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_queue.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/bytes.h"
#include "steer/nfqueue/queue.h"

static void a_message_that_is_no_packet_is_refused(void **state)
{
	_Alignas(8) uint8_t msg[256];
	struct queue_packet p;

	(void)state;
	srandom(3);
	for (int i = 0; i < 20000; i++) {
		for (size_t j = 0; j < sizeof(msg); j++)
			msg[j] = (uint8_t)random();
		/* Every other time, length and type pass the first check. */
		if (i & 1) {
			uint32_t len = (uint32_t)random() % 300;

			memcpy(msg, &len, 4);
			msg[4] = 0; /* NFQNL_MSG_PACKET */
			msg[5] = 3; /* NFNL_SUBSYS_QUEUE */
		}
		if (queue_parse(&p, msg, (size_t)random() % sizeof(msg)) == 0 && p.ip)
			assert_true(p.ip + p.have <= msg + sizeof(msg));
	}
}

/* The last payload and packet id by libmnl's own iteration. */
static void read_by_libmnl(struct queue_packet *p, const struct nlmsghdr *h)
{
	const struct nlattr *a;

	*p = (struct queue_packet){0};
	mnl_attr_for_each(a, h, sizeof(struct nfgenmsg))
	{
		if (mnl_attr_get_type(a) == NFQA_PAYLOAD) {
			p->ip = mnl_attr_get_payload(a);
			p->have = mnl_attr_get_payload_len(a);
		} else if (mnl_attr_get_type(a) == NFQA_PACKET_HDR) {
			p->id = mnl_attr_get_payload_len(a) >= sizeof(struct nfqnl_msg_packet_hdr)
				? be32(mnl_attr_get_payload(a))
				: 0;
		}
	}
}

/* Whole messages, cut short, and with random bytes, in memory of their exact length. */
static void attributes_are_read_as_libmnl_reads_them(void **state)
{
	static const uint16_t type[] = {NFQA_PACKET_HDR, NFQA_IFINDEX_INDEV, NFQA_HWADDR,
		NFQA_TIMESTAMP, NFQA_SKB_INFO, NFQA_CAP_LEN, NFQA_PAYLOAD};
	static const uint16_t len[] = {7, 4, 12, 16, 4, 4, 61};
	uint8_t bytes[61] = {1, 2, 3, 4, 5, 6, 7};
	uint32_t read = 0;

	(void)state;
	srandom(5);
	for (int i = 0; i < 20000; i++) {
		_Alignas(8) uint8_t buf[256] = {0};
		struct nlmsghdr *h = mnl_nlmsg_put_header(buf);
		struct queue_packet p, want;
		uint8_t *exact;

		h->nlmsg_type = NFNL_SUBSYS_QUEUE << 8 | NFQNL_MSG_PACKET;
		mnl_nlmsg_put_extra_header(h, sizeof(struct nfgenmsg));
		for (size_t k = 0; k < ARRAY_LEN(type); k++)
			mnl_attr_put(h, type[k], len[k], bytes);
		for (int k = i % 4; k > 0; k--)
			buf[20 + (size_t)random() % (h->nlmsg_len - 20)] = (uint8_t)random();
		if (i % 3 == 0)
			h->nlmsg_len = 20 + (uint32_t)random() % (h->nlmsg_len - 20);
		exact = malloc(h->nlmsg_len);
		assert_non_null(exact);
		memcpy(exact, buf, h->nlmsg_len);
		if (queue_parse(&p, exact, h->nlmsg_len) == 0) {
			read_by_libmnl(&want, (struct nlmsghdr *)(void *)exact);
			assert_ptr_equal(p.ip, want.ip);
			assert_int_equal(p.have, want.have);
			assert_int_equal(p.id, want.id);
			read++;
		}
		free(exact);
	}
	assert_true(read > 5000);
}

/* The parts the kernel reads: the verdict, its packet id, and the replacement packet. */
static void a_replacing_verdict_carries_the_packet(void **state)
{
	(void)state;
	for (uint32_t mark = 0; mark < 0x20000; mark += 0x12345) {
		_Alignas(8) uint8_t room[QUEUE_REPLACE_LEN + 61];
		uint32_t head = mark ? QUEUE_REPLACE_LEN : QUEUE_REPLACE_LEN - QUEUE_MARK_LEN;
		uint8_t *ip = room + QUEUE_REPLACE_LEN, *buf = ip - head;
		uint16_t part, type;
		uint32_t len;

		for (int i = 0; i < 61; i++)
			ip[i] = (uint8_t)i;
		assert_int_equal(queue_replace(ip, 61, 300, 0x01020304, mark), head + 61);
		memcpy(&len, buf, 4);
		assert_int_equal(len, head + 61);
		assert_int_equal(buf[4], 1); /* NFQNL_MSG_VERDICT */
		assert_int_equal(buf[5], 3); /* NFNL_SUBSYS_QUEUE */
		assert_int_equal(be16(buf + 18), 300);
		memcpy(&part, buf + 20, 2);
		memcpy(&type, buf + 22, 2);
		assert_int_equal(part, 12);
		assert_int_equal(type, 2);           /* NFQA_VERDICT_HDR */
		assert_int_equal(be32(buf + 24), 1); /* NF_ACCEPT */
		assert_int_equal(be32(buf + 28), 0x01020304);
		if (mark) {
			memcpy(&part, buf + 32, 2);
			memcpy(&type, buf + 34, 2);
			assert_int_equal(part, 8);
			assert_int_equal(type, 3); /* NFQA_MARK */
			assert_int_equal(be32(buf + 36), mark);
		}
		memcpy(&part, ip - 4, 2);
		memcpy(&type, ip - 2, 2);
		assert_int_equal(part, 4 + 61);
		assert_int_equal(type, 10); /* NFQA_PAYLOAD */
		for (int i = 0; i < 61; i++)
			assert_int_equal(ip[i], i);
	}
}

/* A socket accepts as many bytes at once as its buffer holds. Netlink takes a message entirely or
 * not at all. */
static void as_many_verdicts_as_a_burst_can_have_are_sent(void **state)
{
	enum { MANY = 16384 + 16384 + 1 };
	struct queue_verdicts v = {.num = 40, .max = MANY};
	uint32_t next = 1, calls = 0;
	int fd[2], status;
	pid_t child;

	(void)state;
	v.buf = calloc(MANY, QUEUE_VERDICT_LEN);
	assert_non_null(v.buf);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fd), 0);
	for (uint32_t id = 1; id <= MANY; id++)
		queue_accept(&v, id);
	assert_int_equal(v.n, MANY);
	child = fork();
	if (child == 0)
		_exit(queue_flush(&v, fd[0]) ? 1 : 0);
	close(fd[0]);
	for (uint8_t *buf = v.buf; next <= MANY; calls++) {
		ssize_t n = recv(fd[1], buf, (size_t)MANY * QUEUE_VERDICT_LEN, 0);

		assert_true(n > 0 && n <= 65536 && n % QUEUE_VERDICT_LEN == 0);
		for (ssize_t at = 0; at < n; at += QUEUE_VERDICT_LEN)
			assert_int_equal(be32(buf + at + 28), next++);
	}
	assert_true(calls < 100);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	close(fd[1]);
	free(v.buf);
}

static void what_a_socket_does_not_take_together_it_gets_one_by_one(void **state)
{
	static uint8_t message[8][2048];
	struct iovec iov[ARRAY_LEN(message)];
	int fd[2], small = 4096;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM, 0, fd), 0);
	for (size_t i = 0; i < ARRAY_LEN(message); i++)
		iov[i] = (struct iovec){message[i], 100};
	assert_int_equal(queue_send(fd[0], iov, ARRAY_LEN(message)), 1);
	assert_int_equal(recv(fd[1], message, sizeof(message), 0), 800);
	/* Together they exceed the buffer. */
	setsockopt(fd[0], SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
	iov[0].iov_len = 9000;
	iov[0].iov_base = message;
	assert_int_equal(queue_send(fd[0], iov, 3), 4);
	assert_int_equal(iov[0].iov_len, 0);
	for (int i = 1; i < 3; i++) {
		assert_int_equal(iov[i].iov_len, 100);
		assert_int_equal(recv(fd[1], message, sizeof(message), 0), 100);
	}
	/* The queue has no reader. */
	close(fd[1]);
	assert_int_equal(queue_send(fd[0], iov + 1, 2), 3);
	assert_int_equal(iov[1].iov_len + iov[2].iov_len, 0);
	close(fd[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_message_that_is_no_packet_is_refused),
		cmocka_unit_test(attributes_are_read_as_libmnl_reads_them),
		cmocka_unit_test(a_replacing_verdict_carries_the_packet),
		cmocka_unit_test(as_many_verdicts_as_a_burst_can_have_are_sent),
		cmocka_unit_test(what_a_socket_does_not_take_together_it_gets_one_by_one),
	};

	return cmocka_run_group_tests_name("queue", tests, NULL, NULL);
}
