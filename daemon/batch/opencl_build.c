/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Builds a program from kernel sources: their order, the options, and the compiler's error text.
 * Called by the control thread only. */
#include "batch/opencl.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "batch/engine.h"
#include "batch/kernels.h"

/* Each source uses those above it. */
static const char *const order[] = {"layout.h", "lanes.cl", "sha1.cl", "g711.cl", "aes_ni.cl",
	"aes_ct.cl", "ghash_ni.cl", "ghash_ct.cl", "gcm.cl", "f8.cl", "recrypt.cl"};

_Static_assert(ARRAY_LEN(order) == OPENCL_SOURCES, "all of them");

static char *builtin_text(const char *name)
{
	for (const struct kernel_source *k = kernel_sources; k->name; k++)
		if (strcmp(k->name, name) == 0)
			return strdup(k->text);
	return NULL;
}

static char *file_text(const char *dir, const char *name)
{
	char path[4096], *text = NULL;
	FILE *f;
	long len;

	if (snprintf(path, sizeof(path), "%s/%s", dir, name) >= (int)sizeof(path))
		return NULL;
	f = fopen(path, "r");
	if (!f)
		return NULL;
	if (fseek(f, 0, SEEK_END) == 0 && (len = ftell(f)) >= 0 && fseek(f, 0, SEEK_SET) == 0) {
		text = calloc(1, (size_t)len + 1);
		if (text && fread(text, 1, (size_t)len, f) != (size_t)len) {
			free(text);
			text = NULL;
		}
	}
	fclose(f);
	return text;
}

int opencl_source_load(struct opencl_source *out, const char *kernel_dir, char *err, size_t err_len)
{
	*out = (struct opencl_source){0};
	for (; out->n < ARRAY_LEN(order); out->n++) {
		const char *name = order[out->n];

		out->text[out->n] = kernel_dir ? file_text(kernel_dir, name) : builtin_text(name);
		if (!out->text[out->n]) {
			snprintf(err, err_len, "opencl: kernel source %s%s%s cannot be read",
				kernel_dir ? kernel_dir : "", kernel_dir ? "/" : "", name);
			opencl_source_free(out);
			return -ENOENT;
		}
	}
	return 0;
}

void opencl_source_free(struct opencl_source *s)
{
	for (unsigned i = 0; i < ARRAY_LEN(s->text); i++)
		free(s->text[i]);
	*s = (struct opencl_source){0};
}

/* The log's first error, on one line. */
static void log_tell(cl_program p, cl_device_id dev, char *err, size_t err_len)
{
	char *log = NULL, *at;
	size_t len = 0;

	snprintf(err, err_len, "opencl: kernels do not compile");
	if (clGetProgramBuildInfo(p, dev, CL_PROGRAM_BUILD_LOG, 0, NULL, &len) || len == 0)
		return;
	log = calloc(1, len + 1);
	if (!log || clGetProgramBuildInfo(p, dev, CL_PROGRAM_BUILD_LOG, len, log, NULL)) {
		free(log);
		return;
	}
	at = strstr(log, "error:");
	at = at ? at : log;
	for (char *c = at; *c; c++)
		if (*c == '\n' || *c == '\t' || *c == '\r')
			*c = ' ';
	snprintf(err, err_len, "opencl: kernels do not compile: %.400s", at);
	free(log);
}

void opencl_binary_free(struct opencl_binary *b)
{
	free(b->p);
	*b = (struct opencl_binary){0};
}

/* On failure, every build is from source: slower, but correct. */
static void binary_keep(struct opencl_binary *b, cl_program p)
{
	if (clGetProgramInfo(p, CL_PROGRAM_BINARY_SIZES, sizeof(b->len), &b->len, NULL) ||
		b->len == 0)
		return;
	b->p = calloc(1, b->len);
	if (b->p && clGetProgramInfo(p, CL_PROGRAM_BINARIES, sizeof(b->p), &b->p, NULL))
		opencl_binary_free(b);
}

static cl_program from_binary(cl_context ctx, cl_device_id dev, const struct opencl_binary *b)
{
	const unsigned char *bytes = b->p;
	cl_int state, res;
	cl_program p = clCreateProgramWithBinary(ctx, 1, &dev, &b->len, &bytes, &state, &res);

	if (p && !res && !state && clBuildProgram(p, 1, &dev, "", NULL, NULL) == CL_SUCCESS)
		return p;
	if (p)
		clReleaseProgram(p);
	return NULL;
}

int opencl_build(cl_program *out, const struct opencl_build *how, char *err, size_t err_len)
{
	const struct opencl_source *src = how->src;
	const struct opencl_shape *shape = how->shape;
	struct opencl_binary *binary = how->binary;
	const char *text[ARRAY_LEN(src->text)];
	char options[160];
	cl_int res;
	cl_program p;

	if (binary && binary->p) {
		*out = from_binary(how->ctx, how->dev, binary);
		if (*out)
			return 0;
		opencl_binary_free(binary);
	}
	for (unsigned i = 0; i < src->n; i++)
		text[i] = src->text[i];
	p = clCreateProgramWithSource(how->ctx, src->n, text, NULL, &res);
	if (!p) {
		snprintf(err, err_len, "opencl: %s (%d)", opencl_strerror(res), res);
		return -EIO;
	}
	snprintf(options, sizeof(options),
		"-cl-std=CL1.2 -DXC_LANES=%u -DXC_GROUPS=%u -DXC_PLANE_WORDS=%u%s%s%s",
		shape->lanes, shape->groups, shape->words,
		shape->aes == OPENCL_AES_PORTABLE            ? " -DXC_PORTABLE_AES"
			: shape->aes == OPENCL_AES_PROCESSOR ? " -DXC_AES"
							     : "",
		shape->vaes ? " -DXC_VAES" : "", shape->by_address ? " -DXC_BY_ADDRESS" : "");
	res = clBuildProgram(p, 1, &how->dev, options, NULL, NULL);
	if (res) {
		log_tell(p, how->dev, err, err_len);
		clReleaseProgram(p);
		return -EIO;
	}
	if (binary)
		binary_keep(binary, p);
	*out = p;
	return 0;
}

static bool has_kernel(cl_program p, const char *name)
{
	cl_int res;
	cl_kernel k = clCreateKernel(p, name, &res);

	if (!res)
		clReleaseKernel(k);
	return !res;
}

static bool processor_has_aes(void)
{
#if defined(__x86_64__)
	return __builtin_cpu_supports("aes");
#else
	return false;
#endif
}

enum opencl_aes opencl_aes(const struct opencl_device *dev)
{
	/* __has_builtin is false for instructions that the selected processor lacks. The builtin
	 * for "pause" shows whether the compiler knows x86 builtins at all. */
	static const char *const text =
		"#if !defined(__has_builtin)\n"
		"__kernel void xc_none(void)\n{\n}\n"
		"#elif defined(__AES__) && __has_builtin(__builtin_ia32_aesenc128)\n"
		"__kernel void xc_everywhere(void)\n{\n}\n"
		"#elif __has_builtin(__builtin_ia32_pause)\n"
		"__kernel void xc_by_target(void)\n{\n}\n"
		"#else\n"
		"__kernel void xc_none(void)\n{\n}\n"
		"#endif\n";
	enum opencl_aes found = OPENCL_AES_PORTABLE;
	cl_int res;
	cl_context ctx = clCreateContext(NULL, 1, &dev->id, NULL, NULL, &res);
	cl_program p =
		ctx ? clCreateProgramWithSource(ctx, 1, (const char **)&text, NULL, &res) : NULL;

	if (p && clBuildProgram(p, 1, &dev->id, "-cl-std=CL1.2", NULL, NULL) == CL_SUCCESS) {
		if (has_kernel(p, "xc_everywhere"))
			found = OPENCL_AES_COMPILER;
		else if (dev->zero_copy && processor_has_aes() && has_kernel(p, "xc_by_target"))
			found = OPENCL_AES_PROCESSOR;
	}
	if (p)
		clReleaseProgram(p);
	if (ctx)
		clReleaseContext(ctx);
	return found;
}
