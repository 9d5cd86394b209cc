/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Memory for keys has pages of its own, so that locking and MADV_DONTDUMP affect nothing else. */
#include "base/secmem.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <unistd.h>

static size_t pages(size_t len)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	return (len + page - 1) / page * page;
}

void *secmem_alloc(size_t len)
{
	void *p;

	if (len == 0 || len > SIZE_MAX / 2)
		return NULL;
	p = mmap(NULL, pages(len), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		return NULL;
	/* Failures are ignored: RLIMIT_MEMLOCK is often small, and wiping protects the keys, too.
	 */
	(void)madvise(p, pages(len), MADV_DONTDUMP);
	/* Key tables are read at random. Huge pages spare page table walks: one entry maps 2 MB,
	 * not 4 KB. */
	(void)madvise(p, pages(len), MADV_HUGEPAGE);
	/* Untouched pages hold no keys and use no memory. Tables are sized for the maximum number
	 * of calls. */
	if (mlock2(p, pages(len), MLOCK_ONFAULT) && errno == ENOSYS)
		(void)mlock(p, pages(len));
	return p;
}

/* Wipes only resident pages: others were never touched, and wiping would allocate them. */
static void wipe_touched(uint8_t *p, size_t len)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), piece;
	uint8_t there[512];

	for (; len; p += piece, len -= piece) {
		piece = len < sizeof(there) * page ? len : sizeof(there) * page;
		if (mincore(p, piece, there)) {
			secmem_wipe(p, piece);
			continue;
		}
		for (size_t i = 0; i < piece / page; i++)
			if (there[i] & 1)
				secmem_wipe(p + i * page, page);
	}
}

void secmem_free(void *p, size_t len)
{
	if (!p)
		return;
	wipe_touched(p, pages(len));
	munmap(p, pages(len));
}

void secmem_wipe(void *p, size_t len)
{
	if (len)
		explicit_bzero(p, len);
}

/* The bits in which n bytes differ. */
static inline uint64_t difference(const uint8_t *x, const uint8_t *y, size_t n)
{
	uint64_t u = 0, v = 0;

	memcpy(&u, x, n);
	memcpy(&v, y, n);
	return u ^ v;
}

bool secmem_equal(const void *a, const void *b, size_t len)
{
	const uint8_t *x = a, *y = b;
	uint64_t diff = 0;

	/* The last word of 8 or 4 bytes may overlap the one before. The compiler does not know the
	 * difference, so it cannot end a loop early. */
	if (len >= 8) {
		for (size_t i = 0; i + 8 < len; i += 8) {
			diff |= difference(x + i, y + i, 8);
			__asm__("" : "+r"(diff));
		}
		diff |= difference(x + len - 8, y + len - 8, 8);
	} else if (len >= 4) {
		diff = difference(x, y, 4) | difference(x + len - 4, y + len - 4, 4);
	} else {
		for (size_t i = 0; i < len; i++)
			diff |= difference(x + i, y + i, 1);
	}
	__asm__("" : "+r"(diff));
	return diff == 0;
}

int secmem_random(void *p, size_t len)
{
	uint8_t *at = p;

	while (len) {
		ssize_t n = getrandom(at, len, 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		at += n;
		len -= (size_t)n;
	}
	return 0;
}

/* A limit of 0 alone does not stop dumps to a program (core(5)). The filter must be written first:
 * the files in /proc of a process that cannot be dumped are root's. */
void secmem_no_dumps(void)
{
	const struct rlimit none = {0, 0};
	int fd = open("/proc/self/coredump_filter", O_WRONLY | O_CLOEXEC);

	if (fd >= 0) {
		(void)!write(fd, "0", 1);
		close(fd);
	}
	setrlimit(RLIMIT_CORE, &none);
	prctl(PR_SET_DUMPABLE, 0);
}
