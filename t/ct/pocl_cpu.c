/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Under valgrind PoCL takes minutes to compile, and outside it compiles for instructions that
 * valgrind does not have. So kernels are compiled outside for a processor that both have, into a
 * cache of their own, and run inside from there: what PoCL asks LLVM about the processor is
 * answered here, the same both times. It needs the program's symbols to be exported. Knows LLVM
 * 15's StringMap<bool>; another LLVM asks elsewhere and this is not called. */
#include <dlfcn.h>
#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct string_ref { /* llvm::StringRef */
	const char *data;
	size_t len;
};

struct string_entry { /* llvm::StringMapEntry<bool>; the name follows */
	size_t len;
	bool value;
};

struct string_map { /* llvm::StringMap<bool> */
	struct string_entry **table;
	unsigned buckets, items, tombstones, item_size;
};

#define CPU_FEATURES "_ZN4llvm3sys18getHostCPUFeaturesERNS_9StringMapIbNS_15MallocAllocatorEEE"

struct string_ref host_cpu_name(void) __asm__("_ZN4llvm3sys14getHostCPUNameEv");
struct string_ref host_cpu_name(void)
{
	return (struct string_ref){"haswell", 7};
}

/* LLVM was loaded by the ICD loader, for itself. */
static int find_llvm(struct dl_phdr_info *info, size_t size, void *handle)
{
	(void)size;
	if (!strstr(info->dlpi_name, "/libLLVM"))
		return 0;
	*(void **)handle = dlopen(info->dlpi_name, RTLD_LAZY | RTLD_NOLOAD);
	return 1;
}

bool host_cpu_features(struct string_map *m) __asm__(CPU_FEATURES);
bool host_cpu_features(struct string_map *m)
{
	bool (*ask)(struct string_map *);
	void *llvm = NULL;

	dl_iterate_phdr(find_llvm, &llvm);
	ask = llvm ? (bool (*)(struct string_map *))(uintptr_t)dlsym(llvm, CPU_FEATURES) : NULL;
	if (!ask || !ask(m))
		return false;
	for (unsigned i = 0; i < m->buckets; i++) {
		struct string_entry *e = m->table[i];

		if (e && (uintptr_t)e < UINTPTR_MAX - 4096 &&
			strncmp((const char *)e + m->item_size, "avx512", 6) == 0)
			e->value = false;
	}
	return true;
}

/* VAES needs AVX-512. */
bool opencl_probe(const void *dev, const void *src, const void *shape);
bool opencl_probe(const void *dev, const void *src, const void *shape)
{
	(void)dev;
	(void)src;
	(void)shape;
	return false;
}
