/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Threads of the daemon, all but the first one. */
#ifndef BASE_THREAD_H
#define BASE_THREAD_H

#include <pthread.h>

/* Starts a thread that gets no signals, because the control thread handles them. attr may be NULL;
 * name has at most 15 characters. 0, or a negative error of pthread_create(). */
int thread_start(pthread_t *out, const pthread_attr_t *attr, const char *name, void *(*run)(void *),
	void *arg);

#endif
