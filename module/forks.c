/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Kamailio keeps the branches of a request in the process that runs the script, and tm loses them
 * when it suspends the transaction. A call to a user with two phones would ring only one. This file
 * carries them to the process that continues. */
#include "forks.h"

#include <string.h>

#include <core/dprint.h>
#include <core/dset.h>
#include <core/mem/shm.h>

void *forks_save(int *count)
{
	branch_t *saved;
	int n = 0;

	while (get_sip_branch(n))
		n++;
	*count = n;
	if (!n)
		return NULL;
	saved = shm_malloc((size_t)n * sizeof(*saved));
	if (!saved) {
		LM_ERR("no memory for %d branches: the first destination only\n", n);
		*count = 0;
		return NULL;
	}
	for (int i = 0; i < n; i++)
		saved[i] = *get_sip_branch(i);
	return saved;
}

void forks_restore(struct sip_msg *msg, void *saved, int count)
{
	branch_t *from = saved, *to;

	/* Clears branches of this process's earlier requests; the request URI still counts. */
	clear_branches();
	ruri_mark_new();
	for (int i = 0; i < count; i++) {
		str uri = {from[i].uri, (int)from[i].len};

		to = ksr_push_branch(msg, &uri, NULL, NULL, from[i].q, from[i].flags,
			from[i].force_send_socket, NULL, 0, NULL, NULL);
		if (to)
			*to = from[i];
	}
	forks_free(saved);
}

void forks_free(void *saved)
{
	if (saved)
		shm_free(saved);
}
