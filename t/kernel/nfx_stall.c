/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Keeps the lock of its own address space held, as any process can with a file of FUSE: the kernel
 * waits for the file's server while it reads the mapping of the file through /proc/self/mem. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "nfx_ring.h"

#define PAGE 4096u

static struct {
	sem_t read, map;
	const void *at;
	int mem;
} stall;

static void *read_it(void *arg)
{
	char byte;

	sem_wait(&stall.read);
	(void)!pread(stall.mem, &byte, 1, (off_t)(uintptr_t)stall.at);
	return arg;
}

/* Waits for the lock as a writer, so that no further reader gets it. */
static void *map_it(void *arg)
{
	void *p;

	sem_wait(&stall.map);
	p = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p != MAP_FAILED)
		munmap(p, PAGE);
	return arg;
}

int nfx_ring_stall(const char *path)
{
	pthread_t thread[2];
	int fd;

	sem_init(&stall.read, 0, 0);
	sem_init(&stall.map, 0, 0);
	/* From the stall on, a page fault or a mapping of this process may wait, too. */
	if (pthread_create(&thread[0], NULL, read_it, NULL) ||
		pthread_create(&thread[1], NULL, map_it, NULL) || mlockall(MCL_CURRENT))
		return -EAGAIN;
	stall.mem = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (stall.mem < 0 || fd < 0)
		return -errno;
	stall.at = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, fd, 0);
	if (stall.at == MAP_FAILED)
		return -errno;
	sem_post(&stall.read);
	return 0;
}

int nfx_ring_map(void)
{
	return sem_post(&stall.map) ? -errno : 0;
}
