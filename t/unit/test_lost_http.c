/* SPDX-License-Identifier: GPL-2.0-or-later */
/* module/lost: HTTP exchanges whose name servers are silent, and connections to strangers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <semaphore.h>
#include <unistd.h>

#include "../../module/lost/http.c"
#include "../../module/lost/identity.c"

#define PATIENCE_S 120 /* a test that hangs has failed */
#define MAX_ASKED  1000

static sem_t asked, answer, gone;

/* libcurl's threads call this: a name server that answers when the test wants it. */
int getaddrinfo(
	const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **res)
{
	(void)node;
	(void)service;
	(void)hints;
	(void)res;
	sem_post(&asked);
	sem_wait(&answer);
	sem_post(&gone);
	return EAI_NONAME;
}

/* The server of the test is on the loopback interface. */
bool reach_is_near(const struct sockaddr *a)
{
	(void)a;
	return false;
}

static int begin_test(void **state)
{
	(void)state;
	alarm(PATIENCE_S);
	return sem_init(&asked, 0, 0) || sem_init(&answer, 0, 0) || sem_init(&gone, 0, 0);
}

struct outcome {
	enum http_error error;
	bool done;
};

static void on_done(void *arg, const struct http_reply *r)
{
	*(struct outcome *)arg = (struct outcome){.error = r->error, .done = true};
}

static enum http_error fetch(struct http *h, const struct http_request *r)
{
	struct outcome result = {0};

	assert_true(http_start(h, r, on_done, &result));
	while (!result.done) {
		http_run(h);
		http_wait(h, -1, 10);
	}
	return result.error;
}

/* All exchanges of a process have one thread: none may wait in it for the thread of a name. */
static void a_silent_name_server_stops_only_its_exchange(void **state)
{
	struct http_config cfg = {.verify = true, .connect_timeout = 50, .max_response = 1000};
	struct http_request r = {.url = "https://slow.test/", .accept = "*/*", .timeout = 50};
	struct http *h = http_new(&cfg);

	(void)state;
	/* Again, if the time was over before anybody asked. */
	do
		assert_int_equal(fetch(h, &r), HTTP_TIMEOUT);
	while (sem_trywait(&asked));
	http_free(h);
	/* Only now the name server answers. */
	for (int i = 0; i < MAX_ASKED; i++)
		sem_post(&answer);
	sem_wait(&gone);
}

/* Answers each request on each connection. */
static void *serve(void *arg)
{
	static const char ok[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
	int s = *(int *)arg, c;
	char buf[2048];

	while ((c = accept(s, NULL, NULL)) >= 0) {
		while (read(c, buf, sizeof(buf)) > 0)
			if (write(c, ok, sizeof(ok) - 1) < 0)
				break;
		close(c);
		sem_post(&gone);
	}
	return NULL;
}

/* Nobody uses them again, and they would take the places of those to servers. */
static void connections_to_strangers_are_closed(void **state)
{
	struct http_config cfg = {.connect_timeout = 60000, .max_response = 1000};
	struct http_request r = {.accept = "*/*", .timeout = 60000, .stranger = true};
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(at);
	int s = socket(AF_INET, SOCK_STREAM, 0);
	struct http *h = http_new(&cfg);
	pthread_t thread;
	char url[64];

	(void)state;
	assert_false(bind(s, (struct sockaddr *)&at, sizeof(at)) || listen(s, 8));
	assert_false(getsockname(s, (struct sockaddr *)&at, &len));
	snprintf(url, sizeof(url), "http://127.0.0.1:%d/", ntohs(at.sin_port));
	r.url = url;
	assert_false(pthread_create(&thread, NULL, serve, &s));
	assert_int_equal(fetch(h, &r), HTTP_NONE);
	sem_wait(&gone);
	http_free(h);
	shutdown(s, SHUT_RDWR);
	pthread_join(thread, NULL);
	close(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_silent_name_server_stops_only_its_exchange, begin_test),
		cmocka_unit_test_setup(connections_to_strangers_are_closed, begin_test),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
