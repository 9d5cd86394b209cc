/* SPDX-License-Identifier: GPL-2.0-or-later */
/* xcipher_tls.so without Kamailio: what a process keeps of its parent's thread-specific values. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../module/tls/own.c"

enum { KEYS = 40 }; /* more than glibc keeps in the first table of a thread */

static void values_in_shared_memory_are_dropped_in_the_child(void **state)
{
	char *shared = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	char *private =
		mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_key_t key[KEYS];
	int status;

	(void)state;
	assert_ptr_not_equal(shared, MAP_FAILED);
	assert_ptr_not_equal(private, MAP_FAILED);
	for (int i = 0; i < KEYS; i++) {
		assert_int_equal(pthread_key_create(&key[i], NULL), 0);
		assert_int_equal(
			pthread_setspecific(key[i], (i % 2 ? shared : private) + 8191 - i), 0);
	}
	pid_t child = fork();

	if (!child) {
		int wrong = own_values() != KEYS / 2 || own_values() != 0;

		for (int i = 0; i < KEYS; i++)
			wrong += pthread_getspecific(key[i]) != (i % 2 ? NULL : private + 8191 - i);
		_exit(wrong);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	for (int i = 0; i < KEYS; i++) {
		assert_ptr_equal(
			pthread_getspecific(key[i]), (i % 2 ? shared : private) + 8191 - i);
		pthread_key_delete(key[i]);
	}
	munmap(shared, 8192);
	munmap(private, 8192);
}

static void values_of_nobody_are_left_alone(void **state)
{
	pthread_key_t key;

	(void)state;
	assert_int_equal(pthread_key_create(&key, NULL), 0);
	assert_int_equal(pthread_setspecific(key, &key), 0); /* on the stack */
	assert_int_equal(own_values(), 0);
	assert_ptr_equal(pthread_getspecific(key), &key);
	assert_int_equal(pthread_setspecific(key, (void *)1), 0); /* in no mapping */
	assert_int_equal(own_values(), 0);
	pthread_key_delete(key);
}

/* In a chroot without /proc it is the same. */
static void without_a_list_of_mappings_nothing_changes(void **state)
{
	char *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct rlimit before, none;
	pthread_key_t key;

	(void)state;
	assert_ptr_not_equal(shared, MAP_FAILED);
	assert_int_equal(pthread_key_create(&key, NULL), 0);
	assert_int_equal(pthread_setspecific(key, shared), 0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = (struct rlimit){.rlim_cur = 0, .rlim_max = before.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	int changed = own_values();

	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(changed, -1);
	assert_ptr_equal(pthread_getspecific(key), shared);
	pthread_key_delete(key);
	munmap(shared, 4096);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_in_shared_memory_are_dropped_in_the_child),
		cmocka_unit_test(values_of_nobody_are_left_alone),
		cmocka_unit_test(without_a_list_of_mappings_nothing_changes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
