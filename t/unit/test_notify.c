/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Notifications to a service manager, and the detection of a stuck worker. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "app/notify.h"

static int manager(const char *name)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);

	assert_true(fd >= 0);
	snprintf(sa.sun_path + 1, sizeof(sa.sun_path) - 1, "%s", name);
	assert_int_equal(
		bind(fd, (struct sockaddr *)&sa,
			(socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name))),
		0);
	return fd;
}

static void the_manager_hears_states_and_nobody_else_is_told_of_it(void **state)
{
	char name[64], with_at[72], got[64] = "";
	struct notify n;
	int fd;

	(void)state;
	snprintf(name, sizeof(name), "xcipher-test-notify-%d", getpid());
	snprintf(with_at, sizeof(with_at), "@%s", name);
	fd = manager(name);
	setenv("NOTIFY_SOCKET", with_at, 1);
	setenv("WATCHDOG_USEC", "30000000", 1);
	unsetenv("WATCHDOG_PID");
	notify_open(&n);
	assert_true(n.watchdog);
	assert_null(getenv("NOTIFY_SOCKET"));
	assert_null(getenv("WATCHDOG_USEC"));
	notify_send(&n, "READY=1");
	assert_int_equal(recv(fd, got, sizeof(got), 0), 7);
	assert_memory_equal(got, "READY=1", 7);
	notify_close(&n);
	close(fd);
}

static void without_a_manager_nothing_happens(void **state)
{
	static const char *const paths[] = {NULL, "", "relative", "/no/such/socket"};

	(void)state;
	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
		struct notify n;

		unsetenv("NOTIFY_SOCKET");
		if (paths[i])
			setenv("NOTIFY_SOCKET", paths[i], 1);
		notify_open(&n);
		assert_int_equal(n.fd, -1);
		assert_false(n.watchdog);
		notify_send(&n, "READY=1");
		notify_close(&n);
	}
}

static void anothers_watchdog_is_not_ours(void **state)
{
	struct notify n;

	(void)state;
	setenv("WATCHDOG_USEC", "30000000", 1);
	setenv("WATCHDOG_PID", "1", 1);
	notify_open(&n);
	assert_false(n.watchdog);
	notify_close(&n);
}

static void a_worker_that_stands_still_is_found_and_one_that_sleeps_is_not(void **state)
{
	struct worker w[2] = {0}, *p[2] = {&w[0], &w[1]};
	struct alive a = {0};
	uint32_t which = 99;
	eventfd_t woken;

	(void)state;
	for (int i = 0; i < 2; i++)
		w[i].wake_fd = eventfd(0, EFD_NONBLOCK);
	for (int second = 0; second < ALIVE_SECONDS; second++) {
		w[0].rounds++;
		assert_true(alive_look(&a, p, 2, &which));
		assert_int_equal(eventfd_read(w[1].wake_fd, &woken), 0);
		assert_int_not_equal(eventfd_read(w[0].wake_fd, &woken), 0);
	}
	w[0].rounds++;
	assert_false(alive_look(&a, p, 2, &which));
	assert_int_equal(which, 1);
	w[1].rounds++;
	w[0].rounds++;
	assert_true(alive_look(&a, p, 2, &which));
	close(w[0].wake_fd);
	close(w[1].wake_fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_manager_hears_states_and_nobody_else_is_told_of_it),
		cmocka_unit_test(without_a_manager_nothing_happens),
		cmocka_unit_test(anothers_watchdog_is_not_ours),
		cmocka_unit_test(a_worker_that_stands_still_is_found_and_one_that_sleeps_is_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
