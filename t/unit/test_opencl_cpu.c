/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The OpenCL engine on a processor with AVX2 and AES-NI but without AVX-512. PoCL 3.1 compiles for
 * haswell there, which has no AES instructions in LLVM. POCL_KERNELLIB_NAME makes PoCL choose that
 * name on any processor. The kernels must contain AES instructions. Their results must be right
 * with and without them. Skipped with another OpenCL or a later PoCL. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "batch/engine.h"
#include "engine_cases.h"

static char cache[] = "/tmp/test_opencl_cpu.XXXXXX";

/* PoCL frees some memory only when the process ends (for LeakSanitizer). */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
	return "leak:libpocl\nleak:libLLVM\nleak:libclang\nleak:libOpenCL\n";
}

static int open_with(void **state, uint32_t flags)
{
	return engine_setup(
		state, &engine_opencl, &(struct engine_config){.device = "", .flags = flags});
}

static int setup(void **state)
{
	return open_with(state, 0);
}

static int setup_portable(void **state)
{
	return open_with(state, ENGINE_PORTABLE_AES);
}

/* vaesenc and vaesenclast with 128-bit registers: C4, three inverted register bits and map 2, a
 * byte whose low three bits say 128 bits and prefix 66, opcode DC or DD (Intel SDM 2, AESENC). */
static unsigned aes_count(const uint8_t *p, size_t len)
{
	unsigned n = 0;

	for (size_t i = 0; i + 4 <= len; i++)
		n += p[i] == 0xc4 && (p[i + 1] & 0x1f) == 2 && (p[i + 2] & 0x87) == 1 &&
			(p[i + 3] == 0xdc || p[i + 3] == 0xdd);
	return n;
}

static unsigned aes_in_file(const char *path)
{
	FILE *f = fopen(path, "r");
	struct stat st;
	unsigned n = 0;
	uint8_t *p;

	if (!f || fstat(fileno(f), &st))
		return 0;
	p = malloc((size_t)st.st_size + 1);
	if (p)
		n = aes_count(p, fread(p, 1, (size_t)st.st_size, f));
	free(p);
	fclose(f);
	return n;
}

/* Instructions in all compiled kernels below a folder of PoCL's cache. */
static unsigned aes_below(const char *dir)
{
	DIR *d = opendir(dir);
	unsigned n = 0;

	for (struct dirent *e; d && (e = readdir(d));) {
		size_t len = strlen(e->d_name);
		char path[4096];

		if (e->d_name[0] == '.' ||
			snprintf(path, sizeof(path), "%s/%s", dir, e->d_name) >= (int)sizeof(path))
			continue;
		if (e->d_type == DT_DIR)
			n += aes_below(path);
		else if (len > 3 && strcmp(e->d_name + len - 3, ".so") == 0)
			n += aes_in_file(path);
	}
	if (d)
		closedir(d);
	return n;
}

static bool is_haswell(const struct engine_fixture *f)
{
	return strstr(f->ops->device(f->e), "haswell") != NULL;
}

static void the_kernels_have_aes_instructions(void **state)
{
	struct engine_fixture *f = *state;

	if (!is_haswell(f) || !__builtin_cpu_supports("aes"))
		skip();
	assert_non_null(strstr(f->ops->device(f->e), ", AES-NI"));
	/* Ten rounds of five blocks under two keys, at least. */
	assert_true(aes_below(cache) >= 100);
}

static void the_kernels_have_none(void **state)
{
	struct engine_fixture *f = *state;

	if (!is_haswell(f))
		skip();
	assert_non_null(strstr(f->ops->device(f->e), ", portable AES"));
	assert_int_equal(aes_below(cache), 0);
}

int main(void)
{
	static const struct CMUnitTest with[] = {
		cmocka_unit_test(the_kernels_have_aes_instructions),
		ENGINE_CASES,
	};
	static const struct CMUnitTest without[] = {
		cmocka_unit_test(the_kernels_have_none),
		ENGINE_CASES,
	};
	char remove[64];
	int failed;

	if (!mkdtemp(cache) || setenv("POCL_KERNELLIB_NAME", "avx2", 1) ||
		setenv("POCL_CACHE_DIR", cache, 1))
		return 1;
	failed = cmocka_run_group_tests_name(
		"portable AES", without, setup_portable, engine_teardown);
	failed += cmocka_run_group_tests_name("AES-NI", with, setup, engine_teardown);
	snprintf(remove, sizeof(remove), "rm -rf %s", cache);
	return system(remove) ? 1 : failed;
}
