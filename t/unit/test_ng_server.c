/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ng over UDP with a mock of the calls: replies, errors and silence as clients of the protocol
 * expect them. */
#include <errno.h>
#include <poll.h>
#include "base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/log.h"
#include "call/browse.h"
#include "call/call.h"
#include "call/delete.h"
#include "call/explain.h"
#include "call/play.h"
#include "call/recording.h"
#include "call/tick.h"
#include "control/cookie.h"
#include "control/server.h"
#include "offer/connect.h"
#include "offer/exchange.h"
#include "offer/trickle.h"

/* --- Calls that say what the test wants ---------------------------------------------------- */

struct calls {
	struct call_reply say;
	uint32_t offers, list_limit;
	bool long_query;
};

void calls_destroy(struct calls *c)
{
	(void)c;
}

void calls_tick(struct calls *c, uint64_t now_ns)
{
	(void)c;
	(void)now_ns;
}

int calls_create(struct calls **out, const struct call_policy *policy, const struct relay *relay)
{
	(void)out;
	(void)policy;
	(void)relay;
	return -ENOSYS;
}

void calls_offer(struct calls *c, struct pool *p, const struct ng_request *r, uint64_t now_ns,
	struct call_reply *out)
{
	(void)now_ns;
	c->offers++;
	*out = c->say;
	out->sdp = pool_printf(p, "v=0 %u " STR_FMT, c->offers, STR_ARG(r->call_id));
}

void calls_answer(struct calls *c, struct pool *p, const struct ng_request *r, uint64_t now_ns,
	struct call_reply *out)
{
	calls_offer(c, p, r, now_ns, out);
}

void calls_trickle(struct calls *c, struct pool *p, const struct ng_request *r, bool is_answer,
	uint64_t now_ns, struct call_reply *out)
{
	(void)c;
	(void)p;
	(void)r;
	(void)is_answer;
	(void)now_ns;
	out->warning = STR("ignored candidates: 2");
}

void calls_delete(struct calls *c, struct pool *p, const struct ng_request *r, uint64_t now_ns,
	struct call_reply *out, struct ngval *dict)
{
	(void)r;
	(void)now_ns;
	*out = c->say;
	ngval_add_int(p, dict, STR("created"), 17);
}

void calls_query(struct calls *c, struct pool *p, const struct ng_request *r, uint64_t now_ns,
	struct call_reply *out, struct ngval *dict)
{
	calls_delete(c, p, r, now_ns, out, dict);
	if (c->long_query)
		ngval_add_str(p, dict, STR("long"), (struct str){pool_alloc(p, 66000), 66000});
}

void calls_connect(struct calls *c, struct pool *p, const struct ng_request *r, uint64_t now_ns,
	struct call_reply *out)
{
	(void)c;
	(void)p;
	(void)r;
	(void)now_ns;
	*out = (struct call_reply){0};
}

void calls_gate(struct calls *c, struct pool *p, const struct ng_request *r,
	struct calls_gate order, uint64_t now_ns, struct call_reply *out)
{
	(void)c, (void)p, (void)r, (void)order, (void)now_ns;
	*out = (struct call_reply){0};
}

void calls_verify_sas(struct calls *c, struct pool *p, const struct ng_request *r, bool verified,
	uint64_t now_ns, struct call_reply *out)
{
	(void)c, (void)p, (void)r, (void)verified, (void)now_ns;
	*out = (struct call_reply){0};
}

void calls_publish(struct calls *c, struct pool *p, const struct ng_request *r, uint64_t now_ns,
	struct call_reply *out, struct ngval *dict)
{
	(void)c, (void)p, (void)r, (void)now_ns, (void)dict;
	*out = (struct call_reply){0};
}

void calls_subscribe(struct calls *c, struct pool *p, const struct ng_request *r, uint64_t now_ns,
	struct call_reply *out, struct ngval *dict)
{
	calls_publish(c, p, r, now_ns, out, dict);
}

void calls_subscribe_answer(struct calls *c, struct pool *p, const struct ng_request *r,
	uint64_t now_ns, struct call_reply *out)
{
	calls_publish(c, p, r, now_ns, out, NULL);
}

void calls_unsubscribe(struct calls *c, struct pool *p, const struct ng_request *r, uint64_t now_ns,
	struct call_reply *out)
{
	calls_publish(c, p, r, now_ns, out, NULL);
}

void calls_record(struct calls *c, struct pool *p, const struct ng_request *r,
	struct calls_record order, uint64_t now_ns, struct call_reply *out)
{
	(void)c, (void)p, (void)r, (void)order, (void)now_ns;
	*out = (struct call_reply){0};
}

void calls_play_media(struct calls *c, struct pool *p, const struct ng_request *r, uint64_t now_ns,
	struct call_reply *out, struct ngval *dict)
{
	calls_publish(c, p, r, now_ns, out, dict);
}

void calls_stop_media(struct calls *c, struct pool *p, const struct ng_request *r, uint64_t now_ns,
	struct call_reply *out, struct ngval *dict)
{
	calls_publish(c, p, r, now_ns, out, dict);
}

void calls_play_dtmf(struct calls *c, struct pool *p, const struct ng_request *r, uint64_t now_ns,
	struct call_reply *out)
{
	calls_publish(c, p, r, now_ns, out, NULL);
}

bool calls_debug(const struct calls *c, struct str call_id)
{
	(void)c, (void)call_id;
	return false;
}

bool calls_set_debug(struct calls *c, struct str call_id, bool on)
{
	(void)c, (void)call_id, (void)on;
	return false;
}

const char *calls_view(struct calls *c, struct pool *p, const struct calls_look *look,
	uint64_t now_ns, struct ngval *dict)
{
	(void)c, (void)p, (void)look, (void)now_ns, (void)dict;
	return NULL;
}

void calls_reply_room(struct calls *c, call_reply_fits *fits, void *arg)
{
	(void)c;
	(void)fits;
	(void)arg;
}

void calls_note(struct calls *c, const struct ng_request *r, uint64_t now_ns, const char *error,
	struct str detail)
{
	(void)detail;
	(void)c, (void)r, (void)now_ns, (void)error;
}

const char *calls_explain(
	struct calls *c, struct pool *p, struct str call_id, uint64_t now_ns, struct ngval *dict)
{
	(void)c, (void)p, (void)call_id, (void)now_ns, (void)dict;
	return "Unknown call-id";
}

void calls_list(struct calls *c, struct pool *p, uint32_t limit, struct ngval *dict)
{
	c->list_limit = limit;
	ngval_add_str(p, ngval_add_list(p, dict, STR("calls")), STR_NONE, STR("one"));
}

void calls_counters(const struct calls *c, struct calls_counters *out)
{
	*out = (struct calls_counters){.current = 3, .total = 9, .offers = c->offers};
}

/* --- Without sockets ----------------------------------------------------------------------- */

static void fill(void *arg, struct pool *p, struct ngval *dict)
{
	ngval_add_int(p, dict, STR("extra"), *(int *)arg);
}

static const char *ask(struct handler *h, const char *json, char *buf, size_t len)
{
	char text[2048];
	struct sbuf b;
	struct pool *p;

	snprintf(text, sizeof(text), "%s", json);
	for (char *c = text; *c; c++)
		if (*c == '\'')
			*c = '"';
	assert_int_equal(pool_create(&p, HANDLER_POOL_LIMIT), 0);
	sbuf_init(&b, 65000);
	handler_request(h, p,
		&(struct handler_message){.body = str_from(text), .encoding = NG_JSON}, 1, &b);
	assert_int_equal(b.err, 0);
	snprintf(buf, len, "%s", b.p);
	for (char *c = buf; *c; c++)
		if (*c == '"')
			*c = '\'';
	sbuf_fini(&b);
	pool_destroy(p);
	return buf;
}

#define CALL        "'call-id':'c','from-tag':'f','to-tag':'t','sdp':'v=0'"
#define ERR(reason) "{'result':'error','error-reason':'" reason "'}"

static void replies_say_what_clients_expect(void **state)
{
	static const struct {
		const char *in;
		struct call_reply say;
		const char *want;
	} T[] = {
		{"{'command':'ping'}", {0}, "{'result':'pong'}"},
		{"{'command':'Ping','flags':['x']}", {0},
			"{'result':'pong','warning':'unknown flag: x'}"},
		{"{", {0}, ERR("Could not decode JSON dictionary (at byte 1)")},
		{"{}", {0}, ERR("Dictionary contains no key \\'command\\'")},
		{"{'command':'pubish'}", {0}, ERR("Unrecognized command")},
		{"{'command':'publish'}", {0}, ERR("No SDP body in message")},
		{"{'command':'subscribe answer','sdp':'v=0','call-id':'c'}", {0},
			ERR("No to-tag in message")},
		{"{'command':'Silence-Media','call-id':'c'}", {0}, "{'result':'ok'}"},
		{"{'command':'offer','call-id':'c','from-tag':'f','sdp':'a=candidate','flags':['fragment']}",
			{0}, "{'result':'ok','warning':'ignored candidates: 2'}"},
		{"{'command':'connect','call-id':'c','from-tag':'f'}", {0},
			ERR("No to-tag in message")},
		{"{'command':'mesh','call-id':'c'}", {0},
			ERR("Not supported: parties of one call are joined by connect, those of several never")},
		{"{'command':'play_media','call-id':'c'}", {0}, "{'result':'ok'}"},
		{"{'command':'offer','call-id':'c'}", {0}, ERR("No SDP body in message")},
		{"{'command':'offer','sdp':'v=0'}", {0}, ERR("No call-id in message")},
		{"{'command':'offer','sdp':'v=0','call-id':'c'}", {0},
			ERR("No from-tag in message")},
		{"{'command':'answer','sdp':'v=0','call-id':'c','from-tag':'f'}", {0},
			ERR("No to-tag in message")},
		{"{'command':'delete'}", {0}, ERR("No call-id in message")},
		{"{'command':'query'}", {0}, ERR("No call-id in message")},
		{"{'command':'offer'," CALL "}", {0}, "{'result':'ok','sdp':'v=0 1 c'}"},
		{"{'command':'answer'," CALL "}", {0}, "{'result':'ok','sdp':'v=0 1 c'}"},
		{"{'command':'offer','flags':['x']," CALL "}", {.warning = {"y", 1}},
			"{'result':'ok','sdp':'v=0 1 c','warning':'unknown flag: x; y'}"},
		{"{'command':'offer'," CALL "}",
			{.error = "Failed to parse SDP", .detail = {"line 3", 6}},
			ERR("Failed to parse SDP (line 3)")},
		{"{'command':'offer'," CALL "}",
			{.error = "Ran out of ports", .detail = {"on default", 10}},
			ERR("Ran out of ports")},
		{"{'command':'offer'," CALL "}", {.load_limit = true},
			ERR("Parallel session limit reached")},
		{"{'command':'offer','supports':['load limit']," CALL "}", {.load_limit = true},
			"{'result':'load limit','message':'Parallel session limit reached'}"},
		{"{'command':'offer','supports':['load limit']," CALL "}",
			{.load_limit = true, .error = "Load limit exceeded"},
			"{'result':'load limit','message':'Load limit exceeded'}"},
		{"{'command':'delete'," CALL "}", {.warning = {"Call-ID not found", 17}},
			"{'result':'ok','created':17,'warning':'Call-ID not found'}"},
		{"{'command':'delete'," CALL "}", {.error = "Unknown call-id"},
			ERR("Unknown call-id")},
		{"{'command':'query'," CALL "}", {0}, "{'result':'ok','created':17}"},
		{"{'command':'list'}", {0}, "{'result':'ok','calls':['one']}"},
	};
	char buf[2048];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		struct calls c = {.say = T[i].say};
		struct handler *h;

		assert_int_equal(handler_create(&h, &c, (struct stats_source){0}, 0), 0);
		if (strcmp(ask(h, T[i].in, buf, sizeof(buf)), T[i].want))
			fail_msg("%s\n  gave: %s\n  want: %s", T[i].in, buf, T[i].want);
		handler_destroy(h);
	}
}

static void a_list_has_a_limit(void **state)
{
	static const struct {
		const char *in;
		uint32_t want;
	} T[] = {
		{"{'command':'list'}", 32},
		{"{'command':'list','limit':5}", 5},
		{"{'command':'list','limit':'0'}", 0},
		{"{'command':'list','limit':-9}", 32},
		{"{'command':'list','limit':9223372036854775807}", 4096},
	};
	struct calls c = {0};
	struct handler *h;
	char buf[2048];

	(void)state;
	assert_int_equal(handler_create(&h, &c, (struct stats_source){0}, 0), 0);
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		ask(h, T[i].in, buf, sizeof(buf));
		assert_int_equal(c.list_limit, T[i].want);
	}
	handler_destroy(h);
}

static void statistics_count_requests_and_errors(void **state)
{
	int extra = 42;
	struct calls c = {0};
	struct handler *h;
	char buf[16384];

	(void)state;
	assert_int_equal(handler_create(&h, &c, (struct stats_source){fill, &extra},
				 clock_mono_ns() - 10000 * NS_PER_SEC),
		0);
	ask(h, "{'command':'ping'}", buf, sizeof(buf));
	ask(h, "{'command':'offer'}", buf, sizeof(buf));
	ask(h, "nonsense", buf, sizeof(buf));
	handler_count_duplicate(h);
	handler_count_drops(h, NG_DROP_COOKIE, 2);
	ask(h, "{'command':'statistics'}", buf, sizeof(buf));
	assert_non_null(strstr(buf, "'result':'ok','statistics':{'currentstatistics':{"));
	assert_non_null(strstr(buf, "'sessionsown':3,"));
	assert_non_null(strstr(buf, "'managedsessions':9,"));
	assert_non_null(strstr(buf, "'totalpingcount':1,'totalpingerrors':0,"));
	assert_non_null(strstr(buf, "'totaloffercount':1,'totaloffererrors':1,"));
	assert_non_null(strstr(buf, "'totalerrorcount':2,'totalinvalidcount':1,"));
	assert_non_null(strstr(buf, "'totalduplicatecount':1,'dropped':{'cookie':2,"));
	assert_non_null(strstr(buf, "'intervalstatistics':{'totalcallsduration':'0.000000',"));
	assert_non_null(strstr(buf, "'extra':42}"));
	/* The time of the request does not matter. */
	assert_non_null(strstr(buf, "'uptime':1000"));
	handler_destroy(h);
}

/* --- With sockets -------------------------------------------------------------------------- */

struct fixture {
	struct calls calls;
	struct handler *h;
	struct ng_dispatch *dispatch;
	struct ng_server *s;
};

static bool start(struct fixture *f, const char *addr)
{
	struct endpoint listen;
	char err[256];
	int ret;

	memset(f, 0, sizeof(*f));
	assert_int_equal(endpoint_parse_addr(&listen, str_from(addr)), 0);
	assert_int_equal(handler_create(&f->h, &f->calls, (struct stats_source){0}, 0), 0);
	assert_int_equal(ng_dispatch_create(&f->dispatch, f->h), 0);
	ret = ng_server_create(&f->s, &listen, f->dispatch, err, sizeof(err));
	if (ret == -EAFNOSUPPORT || ret == -EADDRNOTAVAIL) {
		ng_dispatch_destroy(f->dispatch);
		handler_destroy(f->h);
		return false; /* a machine without IPv6 */
	}
	assert_int_equal(ret, 0);
	ng_dispatch_tick(f->dispatch, 1);
	return true;
}

static void stop(struct fixture *f)
{
	ng_server_destroy(f->s);
	ng_dispatch_destroy(f->dispatch);
	handler_destroy(f->h);
}

/* Connected, like the proxy's socket: it receives from this address only. */
static int client(struct fixture *f, const char *addr)
{
	struct endpoint e;
	struct sockaddr_storage sa;
	socklen_t len;
	int fd;

	assert_int_equal(endpoint_parse_addr(&e, str_from(addr)), 0);
	e.port = ng_server_local(f->s).port;
	len = endpoint_to_sockaddr(&e, &sa);
	fd = socket(e.family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&sa, len), 0);
	return fd;
}

/* The reply; "" if none is expected and none came. */
static struct str exchange(struct fixture *f, int fd, struct str request, bool expected)
{
	static char buf[65536];
	struct pollfd pfd = {.fd = fd, .events = POLLIN};
	struct pollfd server = {.fd = ng_server_fd(f->s), .events = POLLIN};
	ssize_t n;

	assert_int_equal(send(fd, request.s, request.len, 0), request.len);
	assert_int_equal(poll(&server, 1, 60000), 1);
	ng_server_readable(f->s, 1);
	/* The loopback delivers before sendmsg() returns, or soon after it on a busy machine. */
	if (poll(&pfd, 1, expected ? 60000 : 20) != 1)
		return STR("");
	n = recv(fd, buf, sizeof(buf), 0);
	assert_true(n >= 0);
	return (struct str){buf, (size_t)n};
}

static void expect(struct fixture *f, int fd, const char *request, const char *want)
{
	struct str got = exchange(f, fd, str_from(request), want[0] != 0);

	if (!str_eq(got, str_from(want)))
		fail_msg("%s\n  gave: " STR_FMT "\n  want: %s", request, STR_ARG(got), want);
}

static void garbage_gets_an_error_or_silence(void **state)
{
	static const struct {
		const char *in, *want;
	} T[] = {
		{"1_2_3 d7:command4:pinge", "1_2_3 d6:result4:ponge"},
		{"a {\"command\":\"ping\"}", "a {\"result\":\"pong\"}"},
		{"b ", "b d6:result5:error12:error-reason25:Invalid data (no payload)e"},
		{"c hello", "c d6:result5:error12:error-reason22:Invalid NG data formate"},
		{"d d7:command",
			"d d6:result5:error12:error-reason48:Could not decode bencode dictionary "
			"(at byte 10)e"},
		{"no-cookie", ""},
		{" d7:command4:pinge", ""},
		{"", ""},
	};
	struct fixture f;
	int fd;

	(void)state;
	assert_true(start(&f, "127.0.0.1"));
	fd = client(&f, "127.0.0.1");
	for (size_t i = 0; i < ARRAY_LEN(T); i++)
		expect(&f, fd, T[i].in, T[i].want);
	close(fd);
	stop(&f);
}

#define OFFER "d7:command5:offer7:call-id1:c8:from-tag1:f3:sdp3:v=0e"

static void a_repeated_cookie_is_answered_and_not_carried_out_again(void **state)
{
	struct fixture f;
	int one, two;

	(void)state;
	assert_true(start(&f, "127.0.0.1"));
	one = client(&f, "127.0.0.1");
	two = client(&f, "127.0.0.1");
	expect(&f, one, "1 " OFFER, "1 d6:result2:ok3:sdp7:v=0 1 ce");
	expect(&f, one, "1 " OFFER, "1 d6:result2:ok3:sdp7:v=0 1 ce");
	expect(&f, two, "1 " OFFER, "1 d6:result2:ok3:sdp7:v=0 2 ce");
	expect(&f, one, "2 " OFFER, "2 d6:result2:ok3:sdp7:v=0 3 ce");
	assert_int_equal(f.calls.offers, 3);
	ng_dispatch_tick(f.dispatch, 1 + 2 * COOKIE_LIFE_NS);
	ng_dispatch_tick(f.dispatch, 1 + 3 * COOKIE_LIFE_NS);
	expect(&f, one, "1 " OFFER, "1 d6:result2:ok3:sdp7:v=0 4 ce");
	close(one);
	close(two);
	stop(&f);
}

/* Waits until the loopback has delivered what was sent before. */
static void delivered(void)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct pollfd p = {.fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), .events = POLLIN};
	socklen_t len = sizeof(a);

	assert_int_equal(bind(p.fd, (struct sockaddr *)&a, len), 0);
	assert_int_equal(getsockname(p.fd, (struct sockaddr *)&a, &len), 0);
	assert_int_equal(sendto(p.fd, "", 1, 0, (struct sockaddr *)&a, len), 1);
	assert_int_equal(poll(&p, 1, 60000), 1);
	close(p.fd);
}

static uint32_t waiting_replies(int fd)
{
	char buf[64];
	uint32_t n = 0;

	delivered();
	while (recv(fd, buf, sizeof(buf), MSG_DONTWAIT) > 0)
		n++;
	return n;
}

/* Two hundred requests wait in the socket before the proxy's. In order of arrival, it would be
 * answered in the fourth round. */
static void a_source_that_floods_does_not_delay_another(void **state)
{
	struct fixture f;
	int flood, proxy;
	char text[64];

	(void)state;
	assert_true(start(&f, "127.0.0.1"));
	flood = client(&f, "127.0.0.1");
	proxy = client(&f, "127.0.0.1");
	for (int i = 0; i < 200; i++) {
		int len = snprintf(text, sizeof(text), "%d d7:command4:pinge", i);

		assert_int_equal(send(flood, text, (size_t)len, 0), len);
	}
	assert_int_equal(send(proxy, "1 d7:command4:pinge", 19, 0), 19);
	delivered();
	assert_true(ng_server_readable(f.s, 1));
	assert_int_equal(waiting_replies(proxy), 1);
	assert_int_equal(waiting_replies(flood), 63);
	/* none is lost, and the caller is told while some wait */
	assert_true(ng_server_readable(f.s, 1));
	assert_true(ng_server_readable(f.s, 1));
	assert_false(ng_server_readable(f.s, 1));
	assert_int_equal(waiting_replies(flood), 137);
	close(flood);
	close(proxy);
	stop(&f);
}

static bool is_media(void *arg, const struct endpoint *from)
{
	return from->port == *(const uint16_t *)arg;
}

static void what_a_media_port_sent_is_not_read(void **state)
{
	struct sockaddr_in sa;
	socklen_t len = sizeof(sa);
	struct fixture f;
	int media, proxy;
	uint16_t port;

	(void)state;
	assert_true(start(&f, "127.0.0.1"));
	media = client(&f, "127.0.0.1");
	proxy = client(&f, "127.0.0.1");
	assert_int_equal(getsockname(media, (struct sockaddr *)&sa, &len), 0);
	port = ntohs(sa.sin_port);
	expect(&f, media, "1 " OFFER, "1 d6:result2:ok3:sdp7:v=0 1 ce");
	ng_server_refuse(f.s, is_media, &port);
	expect(&f, media, "2 " OFFER, "");
	expect(&f, media, "1 " OFFER, ""); /* and not reported again */
	expect(&f, proxy, "3 " OFFER, "3 d6:result2:ok3:sdp7:v=0 2 ce");
	assert_int_equal(handler_drops(f.h, NG_DROP_OWN_MEDIA), 2);
	assert_int_equal(f.calls.offers, 2);
	close(media);
	close(proxy);
	stop(&f);
}

static void replies_leave_from_the_address_that_was_asked(void **state)
{
	static const struct {
		const char *listen, *ask;
	} T[] = {
		{"0.0.0.0", "127.0.0.1"},
		{"0.0.0.0", "127.0.0.2"},
		{"127.0.0.3", "127.0.0.3"},
		{"::1", "::1"},
		{"::", "::1"},
		{"::", "127.0.0.2"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		struct fixture f;
		int fd;

		if (!start(&f, T[i].listen))
			continue;
		fd = client(&f, T[i].ask);
		expect(&f, fd, "x d7:command4:pinge", "x d6:result4:ponge");
		close(fd);
		stop(&f);
	}
}

static void large_requests_are_read_and_large_replies_refused(void **state)
{
	static char big[65000];
	struct fixture f;
	int fd, len;

	(void)state;
	assert_true(start(&f, "127.0.0.1"));
	fd = client(&f, "127.0.0.1");
	len = snprintf(big, sizeof(big), "x d7:command4:ping3:sdp64000:");
	memset(big + len, 'a', 64000);
	big[len + 64000] = 'e';
	assert_true(str_eq(exchange(&f, fd, (struct str){big, (size_t)len + 64001}, true),
		STR("x d6:result4:ponge")));
	f.calls.long_query = true;
	expect(&f, fd, "y d7:command5:query7:call-id1:ce",
		"y d6:result5:error12:error-reason17:Reply is too longe");
	expect(&f, fd, "z {\"command\":\"query\",\"call-id\":\"c\"}",
		"z {\"result\":\"error\",\"error-reason\":\"Reply is too long\"}");
	close(fd);
	stop(&f);
}

static void an_address_in_use_is_told_in_one_line(void **state)
{
	struct ng_server *s = NULL;
	struct endpoint taken;
	struct fixture f;
	char err[256] = "";

	(void)state;
	assert_true(start(&f, "127.0.0.1"));
	taken = ng_server_local(f.s);
	assert_int_equal(ng_server_create(&s, &taken, f.dispatch, err, sizeof(err)), -EADDRINUSE);
	assert_null(s);
	assert_non_null(strstr(err, "cannot listen for ng on 127.0.0.1:"));
	stop(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(replies_say_what_clients_expect),
		cmocka_unit_test(a_list_has_a_limit),
		cmocka_unit_test(statistics_count_requests_and_errors),
		cmocka_unit_test(garbage_gets_an_error_or_silence),
		cmocka_unit_test(a_repeated_cookie_is_answered_and_not_carried_out_again),
		cmocka_unit_test(a_source_that_floods_does_not_delay_another),
		cmocka_unit_test(what_a_media_port_sent_is_not_read),
		cmocka_unit_test(replies_leave_from_the_address_that_was_asked),
		cmocka_unit_test(large_requests_are_read_and_large_replies_refused),
		cmocka_unit_test(an_address_in_use_is_told_in_one_line),
	};

	log_set_level(LOG_CRIT); /* refused requests are intended here and would flood the log */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
