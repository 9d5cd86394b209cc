/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Private to the OpenCL engine (opencl*.c): the chosen device, and a program built for it. */
#ifndef BATCH_OPENCL_H
#define BATCH_OPENCL_H

#include <CL/cl.h>

#include "batch/engine.h"

struct opencl_device {
	cl_platform_id platform;
	cl_device_id id;
	bool zero_copy; /* a CPU: the arena is the device's memory */
	bool scalar;    /* one packet per work-item */
	uint32_t words; /* native vector width in 32-bit words: 4, 8 or 16 */
	char name[320]; /* a description for logs */
};

/* Selects the device that the configuration names (engine.h). 0 or -errno with a line in err. */
int opencl_device_choose(
	struct opencl_device *out, const struct engine_config *cfg, char *err, size_t err_len);

/* The kernels' sources: built in, or from a folder. */
#define OPENCL_SOURCES 11
struct opencl_source {
	char *text[OPENCL_SOURCES];
	unsigned n;
};
int opencl_source_load(
	struct opencl_source *out, const char *kernel_dir, char *err, size_t err_len);
void opencl_source_free(struct opencl_source *s);

enum opencl_aes {
	OPENCL_AES_PORTABLE,
	OPENCL_AES_COMPILER,  /* AES instructions, which the compiler allows in every function */
	OPENCL_AES_PROCESSOR, /* AES instructions, only in functions with their own target */
};
struct opencl_shape {
	uint32_t lanes, groups, words;
	uint32_t flags; /* ENGINE_* */
	enum opencl_aes aes;
	bool vaes;       /* the device is this processor, and the processor has VAES */
	bool by_address; /* xc_recrypt_place(), not xc_recrypt_batch() (layout.h) */
};
/* A compiled program as a binary. */
struct opencl_binary {
	unsigned char *p;
	size_t len;
};
void opencl_binary_free(struct opencl_binary *b);

/* Builds from the binary if there is one. Otherwise builds from source and keeps the binary: some
 * implementations have no cache, and every queue has its own context. 0 or -errno with the first
 * lines of the compiler's log in err. */
struct opencl_build {
	cl_context ctx;
	cl_device_id dev;
	const struct opencl_source *src;
	const struct opencl_shape *shape;
	struct opencl_binary *binary; /* NULL: not kept */
};
int opencl_build(cl_program *out, const struct opencl_build *how, char *err, size_t err_len);

/* How kernels can use AES instructions. Tests the compiler's macros as lanes.cl does. If these lack
 * AES and the device is this processor, tests the processor itself: PoCL 3.1 compiles for haswell,
 * without AES, on every processor with AVX2 but no AVX-512. Try OPENCL_AES_PROCESSOR with
 * opencl_probe() before use. */
enum opencl_aes opencl_aes(const struct opencl_device *dev);

/* Whether kernels share this process's addresses, by the device's properties and by trial: a buffer
 * made of our memory has our address in a kernel, and a kernel can write to memory given only as an
 * address. */
bool opencl_by_address(const struct opencl_device *dev);

/* Whether these kernels compile without crashing: tried in child processes, one for each, in
 * parallel. This also fills the implementation's cache. */
bool opencl_probe(const struct opencl_device *dev, const struct opencl_source *src,
	const struct opencl_shape *shape, unsigned n);

const char *opencl_strerror(cl_int err);

#endif
