/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Chooses the OpenCL device: by index, type, or part of its platform's or its own name. The default
 * is a CPU, because most batches are small. Called by the control thread only: PoCL's set-up is not
 * thread-safe. */
#include "batch/engine.h"
#include "batch/opencl.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum { PLATFORMS_MAX = 16, DEVICES_MAX = 32 };

struct found {
	cl_platform_id platform;
	cl_device_id id;
	cl_device_type type;
	char platform_name[96], name[128];
};

const char *opencl_strerror(cl_int err)
{
	switch (err) {
	case CL_DEVICE_NOT_FOUND:
		return "no such device";
	case CL_DEVICE_NOT_AVAILABLE:
		return "device not available";
	case CL_COMPILER_NOT_AVAILABLE:
		return "no compiler";
	case CL_MEM_OBJECT_ALLOCATION_FAILURE:
	case CL_OUT_OF_RESOURCES:
		return "out of device memory or resources";
	case CL_OUT_OF_HOST_MEMORY:
		return "out of memory";
	case CL_BUILD_PROGRAM_FAILURE:
		return "kernels do not compile";
	case CL_INVALID_KERNEL_NAME:
		return "kernel missing from its source";
	case -1001:
		return "no OpenCL platform is installed";
	default:
		return "OpenCL error";
	}
}

static unsigned devices_find(struct found *f, unsigned max)
{
	cl_platform_id platform[PLATFORMS_MAX];
	cl_uint np = 0;
	unsigned n = 0;

	if (clGetPlatformIDs(PLATFORMS_MAX, platform, &np) != CL_SUCCESS)
		return 0;
	for (cl_uint p = 0; p < np && p < PLATFORMS_MAX; p++) {
		cl_device_id dev[DEVICES_MAX];
		cl_uint nd = 0;

		if (clGetDeviceIDs(platform[p], CL_DEVICE_TYPE_ALL, DEVICES_MAX, dev, &nd))
			continue;
		for (cl_uint d = 0; d < nd && d < DEVICES_MAX && n < max; d++, n++) {
			memset(&f[n], 0, sizeof(f[n]));
			f[n].platform = platform[p];
			f[n].id = dev[d];
			clGetDeviceInfo(
				dev[d], CL_DEVICE_TYPE, sizeof(f[n].type), &f[n].type, NULL);
			clGetDeviceInfo(
				dev[d], CL_DEVICE_NAME, sizeof(f[n].name) - 1, f[n].name, NULL);
			clGetPlatformInfo(platform[p], CL_PLATFORM_NAME,
				sizeof(f[n].platform_name) - 1, f[n].platform_name, NULL);
		}
	}
	return n;
}

static bool contains(const char *text, const char *part)
{
	return strcasestr(text, part) != NULL;
}

/* Rates how well a device matches the request; 0 = not at all. */
static int fitness(const struct found *f, unsigned index, const char *want)
{
	int is_cpu = f->type & CL_DEVICE_TYPE_CPU ? 1 : 0;
	int is_gpu = f->type & CL_DEVICE_TYPE_GPU ? 1 : 0;
	char *end;

	if (!want || !want[0])
		return 1 + is_cpu;
	if (strcasecmp(want, "cpu") == 0)
		return is_cpu;
	if (strcasecmp(want, "gpu") == 0)
		return is_gpu;
	if (isdigit((unsigned char)want[0])) {
		unsigned long n = strtoul(want, &end, 10);

		if (!*end)
			return n == index;
	}
	return contains(f->name, want) || contains(f->platform_name, want) ? 1 + is_cpu : 0;
}

static int device_usable(const struct found *f, char *err, size_t err_len)
{
	cl_bool little = CL_FALSE, compiler = CL_FALSE;

	clGetDeviceInfo(f->id, CL_DEVICE_ENDIAN_LITTLE, sizeof(little), &little, NULL);
	clGetDeviceInfo(f->id, CL_DEVICE_COMPILER_AVAILABLE, sizeof(compiler), &compiler, NULL);
	if (little && compiler)
		return 0;
	snprintf(err, err_len, "opencl: device \"%s\" %s; choose another with opencl-device",
		f->name, little ? "has no compiler" : "is big-endian");
	return -ENOTSUP;
}

/* The engine appends the number of lanes. */
static void device_take(struct opencl_device *out, const struct found *f)
{
	cl_uint width = 0, units = 0;
	char driver[64] = "";

	*out = (struct opencl_device){.platform = f->platform, .id = f->id};
	clGetDeviceInfo(f->id, CL_DEVICE_NATIVE_VECTOR_WIDTH_INT, sizeof(width), &width, NULL);
	out->words = width >= 16 ? 16 : width >= 8 ? 8 : 4;
	out->zero_copy = f->type & CL_DEVICE_TYPE_CPU;
	out->scalar = !out->zero_copy;
	clGetDeviceInfo(f->id, CL_DEVICE_MAX_COMPUTE_UNITS, sizeof(units), &units, NULL);
	clGetDeviceInfo(f->id, CL_DRIVER_VERSION, sizeof(driver) - 1, driver, NULL);
	snprintf(out->name, sizeof(out->name), "%s (%s, driver %s, %u unit%s)", f->name,
		f->platform_name, driver, units, units == 1 ? "" : "s");
}

int opencl_device_choose(
	struct opencl_device *out, const struct engine_config *cfg, char *err, size_t err_len)
{
	struct found f[DEVICES_MAX];
	unsigned n = devices_find(f, DEVICES_MAX), best = 0;
	int fit = 0;

	if (n == 0) {
		snprintf(err, err_len,
			"opencl: no OpenCL device found; install a driver, for CPUs the package pocl-opencl-icd");
		return -ENODEV;
	}
	for (unsigned i = 0; i < n; i++) {
		int this = fitness(&f[i], i, cfg->device);

		if (this > fit) {
			fit = this;
			best = i;
		}
	}
	if (fit == 0) {
		int used = snprintf(
			err, err_len, "opencl: no device matches \"%s\"; there is", cfg->device);

		for (unsigned i = 0; i < n && used > 0 && (size_t)used < err_len; i++)
			used += snprintf(err + used, err_len - (size_t)used, "%s %u: %s (%s)",
				i ? "," : "", i, f[i].name, f[i].platform_name);
		return -ENODEV;
	}
	if (device_usable(&f[best], err, err_len))
		return -ENOTSUP;
	device_take(out, &f[best]);
	return 0;
}
