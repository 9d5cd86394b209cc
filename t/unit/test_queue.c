/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Messages of netfilter's queue, read and written by hand (steer/queue.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#include <string.h>

#include "base/bytes.h"
#include "steer/queue.h"

static void a_message_that_is_no_packet_is_refused(void **state)
{
	_Alignas(8) uint8_t msg[256];
	struct queue_packet p;

	(void)state;
	srandom(3);
	for (int i = 0; i < 20000; i++) {
		for (size_t j = 0; j < sizeof(msg); j++)
			msg[j] = (uint8_t)random();
		/* Length and type that get past the first look, every other time. */
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

/* What the kernel reads of it: the verdict with its id, and the packet that takes the other's place. */
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_message_that_is_no_packet_is_refused),
		cmocka_unit_test(a_replacing_verdict_carries_the_packet),
	};

	return cmocka_run_group_tests_name("queue", tests, NULL, NULL);
}
