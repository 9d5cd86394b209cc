/* SPDX-License-Identifier: GPL-2.0-or-later */
/* An association against openssl s_client and s_server over loopback: the handshake in both roles
 * with each profile, and equal keys (RFC 5764 4.2). Real time, because the peer is a process. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/endpoint.h"
#include "hex.h"
#include "keying/dtls.h"

#define S_NS    1000000000ull
#define WAIT_NS (300 * S_NS)
#define TEXT    65536

struct peer {
	pid_t pid;
	int out; /* what it prints */
	int in;  /* keeps its standard input open */
	size_t len;
	char text[TEXT];
};

struct talk {
	int fd;
	struct dtls *a;
	struct peer peer;
	struct endpoint to;
	uint64_t end_ns;
};

static char folder[] = "/tmp/test_dtls_interop.XXXXXX";

static uint64_t clock_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * S_NS + (uint64_t)ts.tv_nsec;
}

static void peer_start(struct peer *p, char *const argv[])
{
	int out[2], in[2];

	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	assert_int_equal(pipe2(in, O_CLOEXEC), 0);
	p->len = 0;
	p->pid = fork();
	assert_true(p->pid >= 0);
	if (p->pid == 0) {
		dup2(in[0], 0);
		dup2(out[1], 1);
		dup2(out[1], 2);
		execvp(argv[0], argv);
		_exit(127);
	}
	close(out[1]);
	close(in[0]);
	p->out = out[0];
	p->in = in[1];
	assert_int_equal(fcntl(p->out, F_SETFL, O_NONBLOCK), 0);
}

static void peer_stop(struct peer *p)
{
	kill(p->pid, SIGKILL);
	waitpid(p->pid, NULL, 0);
	close(p->out);
	close(p->in);
}

static void peer_read(struct peer *p)
{
	ssize_t n;

	while (p->len + 1 < TEXT && (n = read(p->out, p->text + p->len, TEXT - 1 - p->len)) > 0)
		p->len += (size_t)n;
	p->text[p->len] = 0;
}

static int bind_loopback(uint16_t *port)
{
	struct sockaddr_in sa = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(sa);
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&sa, &len), 0);
	*port = ntohs(sa.sin_port);
	return fd;
}

static void send_all(struct talk *t)
{
	struct sockaddr_storage sa;
	socklen_t len = endpoint_to_sockaddr(&t->to, &sa);
	uint8_t buf[DTLS_PACKET_MAX];
	int n;

	while ((n = dtls_next(t->a, buf, sizeof(buf))) > 0)
		(void)sendto(t->fd, buf, (size_t)n, 0, (struct sockaddr *)&sa, len);
	assert_int_equal(n, 0);
}

/* Until the peer printed a line with this text. */
static bool talk_until(struct talk *t, const char *text)
{
	while (clock_ns() < t->end_ns) {
		struct pollfd pfd[2] = {
			{.fd = t->fd, .events = POLLIN}, {.fd = t->peer.out, .events = POLLIN}};
		struct sockaddr_storage sa;
		socklen_t sa_len = sizeof(sa);
		uint8_t buf[2048];
		const char *found;
		ssize_t n;

		poll(pfd, 2, 20);
		peer_read(&t->peer);
		while ((n = recvfrom(t->fd, buf, sizeof(buf), 0, (struct sockaddr *)&sa, &sa_len)) >
			0) {
			(void)endpoint_from_sockaddr(&t->to, &sa);
			(void)dtls_take(t->a, buf, (size_t)n, clock_ns());
			send_all(t);
		}
		dtls_tick(t->a, clock_ns());
		send_all(t);
		found = strstr(t->peer.text, text);
		if (found && strchr(found, '\n'))
			return true;
	}
	return false;
}

/* The bytes that s_client and s_server print with -keymatexport, in our order (RFC 5764 4.2). */
static void check_keys(struct talk *t, const struct srtp_suite *s, bool we_serve)
{
	const char *at = strstr(t->peer.text, "    Keying material: ");
	size_t total = 2u * (s->key_len + s->salt_len);
	struct srtp_master rx, tx;
	uint8_t m[128], mine[128];
	const struct srtp_master *client = we_serve ? &rx : &tx, *server = we_serve ? &tx : &rx;
	uint8_t *p = mine;

	assert_non_null(at);
	assert_int_equal(unhex(m, total, at + strlen("    Keying material: ")), total);
	assert_int_equal(dtls_keys(t->a, &rx, &tx), 0);
	assert_int_equal(rx.suite, s->id);
	p = (uint8_t *)memcpy(p, client->key, s->key_len) + s->key_len;
	p = (uint8_t *)memcpy(p, server->key, s->key_len) + s->key_len;
	p = (uint8_t *)memcpy(p, client->salt, s->salt_len) + s->salt_len;
	memcpy(p, server->salt, s->salt_len);
	assert_memory_equal(mine, m, total);
}

static void create(struct talk *t, struct dtls_cert *ours, enum dtls_role role,
	enum srtp_suite_id suite, const struct dtls_fingerprint *expected)
{
	struct dtls_config c = {.cert = ours,
		.role = role,
		.profile = {suite},
		.profiles = 1,
		.give_up_ns = WAIT_NS};
	struct dtls_fingerprints f = {.count = 1, .f = {*expected}};

	t->end_ns = clock_ns() + WAIT_NS;
	assert_int_equal(dtls_create(&t->a, &c), 0);
	assert_int_equal(dtls_expect(t->a, &f, clock_ns()), 0);
}

static uint16_t free_port(void)
{
	uint16_t port;

	close(bind_loopback(&port));
	return port;
}

static void one_talk(struct dtls_cert *ours, const struct dtls_fingerprint *peer_print,
	const char *pem, enum srtp_suite_id suite, const char *profile, bool we_serve)
{
	static struct talk t;
	const struct srtp_suite *s = srtp_suite_get(suite);
	char length[16], at[32], label[] = "EXTRACTOR-dtls_srtp";
	uint16_t port;

	memset(&t, 0, sizeof(t));
	create(&t, ours, we_serve ? DTLS_ROLE_SERVER : DTLS_ROLE_CLIENT, suite, peer_print);
	t.fd = bind_loopback(&port);
	snprintf(length, sizeof(length), "%u", 2u * (s->key_len + s->salt_len));
	if (!we_serve)
		port = free_port();
	snprintf(at, sizeof(at), we_serve ? "127.0.0.1:%u" : "%u", port);
	{
		char *client[] = {"openssl", "s_client", "-dtls1_2", "-connect", at, "-use_srtp",
			(char *)profile, "-cert", (char *)pem, "-key", (char *)pem, "-keymatexport",
			label, "-keymatexportlen", length, NULL};
		char *server[] = {"openssl", "s_server", "-dtls1_2", "-listen", "-accept", at,
			"-use_srtp", (char *)profile, "-cert", (char *)pem, "-key", (char *)pem,
			"-Verify", "1", "-keymatexport", label, "-keymatexportlen", length, NULL};

		peer_start(&t.peer, we_serve ? client : server);
	}
	if (!we_serve) {
		char v4[32];

		assert_true(talk_until(&t, "ACCEPT"));
		snprintf(v4, sizeof(v4), "127.0.0.1:%u", port);
		assert_int_equal(endpoint_parse(&t.to, str_from(v4)), 0);
		assert_int_equal(dtls_start(t.a, clock_ns()), 0);
		send_all(&t);
	}
	if (!talk_until(&t, "    Keying material: "))
		fail_msg("%s: %s, peer: %s", profile, dtls_failure_text(dtls_failure(t.a)),
			t.peer.text);
	while (dtls_state(t.a) != DTLS_OPEN && talk_until(&t, ""))
		;
	check_keys(&t, s, we_serve);
	dtls_close(t.a, clock_ns());
	send_all(&t);
	peer_stop(&t.peer);
	close(t.fd);
	dtls_destroy(t.a);
}

static void run_openssl(const char *command)
{
	int status = system(command);

	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void talk_to_openssl(bool we_serve)
{
	static const struct {
		enum srtp_suite_id suite;
		const char *name;
	} t[] = {
#define X(id, number, name, rfc_name) {SUITE_##id, name},
		DTLS_PROFILES(X)
#undef X
	};
	char pem[sizeof(folder) + 16], command[512], text[8192];
	struct dtls_fingerprint peer;
	struct dtls_cert *ours, *theirs;
	size_t len;
	FILE *f;

	snprintf(pem, sizeof(pem), "%s/peer.pem", folder);
	snprintf(command, sizeof(command),
		"openssl req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=peer -keyout %s/k -out "
		"%s/c 2>/dev/null && cat %s/k %s/c > %s",
		folder, folder, folder, folder, pem);
	run_openssl(command);
	f = fopen(pem, "r");
	assert_non_null(f);
	len = fread(text, 1, sizeof(text), f);
	fclose(f);
	assert_int_equal(dtls_cert_load(&theirs, (struct str){text, len}, (struct str){text, len},
				 (uint64_t)time(NULL)),
		0);
	assert_int_equal(dtls_cert_fingerprint(&peer, theirs, DTLS_SHA256), 0);
	assert_int_equal(dtls_cert_create(&ours, (uint64_t)time(NULL), 86400), 0);
	for (size_t i = 0; i < ARRAY_LEN(t); i++)
		one_talk(ours, &peer, pem, t[i].suite, t[i].name, we_serve);
	dtls_cert_put(ours);
	dtls_cert_put(theirs);
}

static void test_openssl_as_client_gets_the_same_keys(void **state)
{
	(void)state;
	talk_to_openssl(true);
}

static void test_openssl_as_server_gets_the_same_keys(void **state)
{
	(void)state;
	talk_to_openssl(false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_openssl_as_client_gets_the_same_keys),
		cmocka_unit_test(test_openssl_as_server_gets_the_same_keys),
	};
	char command[64];
	int failed;

	if (!mkdtemp(folder))
		return 1;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	snprintf(command, sizeof(command), "rm -r %s", folder);
	return system(command) ? 1 : failed;
}
