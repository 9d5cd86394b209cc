/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/thread.h"

#include <signal.h>

int thread_start(pthread_t *out, const pthread_attr_t *attr, const char *name, void *(*run)(void *),
	void *arg)
{
	sigset_t all, old;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(out, attr, run, arg);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (err)
		return -err;
	pthread_setname_np(*out, name);
	return 0;
}
