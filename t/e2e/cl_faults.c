/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Preloaded in front of the OpenCL loader by test_devices.py: as soon as the file $XC_FAULTS/N
 * exists, the Nth device of the first platform takes no more kernels, as one whose driver has reset
 * it; with $XC_FAULTS/hangN nothing there is ever complete. With $XC_SLOW_US a thread sees one
 * command complete in so many microseconds, as on a device that works beside it. With $XC_GPU all
 * devices are GPUs, and $XC_FAULTS/caps gets a line for each context: the capabilities that threads
 * of a driver would inherit. */
#define _GNU_SOURCE
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static cl_uint index_of(cl_command_queue q)
{
	cl_platform_id platform;
	cl_device_id all[8], dev = NULL;
	cl_uint n = 0, at = 0;

	clGetCommandQueueInfo(q, CL_QUEUE_DEVICE, sizeof(dev), &dev, NULL);
	clGetPlatformIDs(1, &platform, NULL);
	clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 8, all, &n);
	while (at < n && all[at] != dev)
		at++;
	return at;
}

static int fault(const char *what, cl_command_queue q)
{
	const char *dir = getenv("XC_FAULTS");
	char path[512];

	return dir &&
		snprintf(path, sizeof(path), "%s/%s%u", dir, what, index_of(q)) <
		(int)sizeof(path) &&
		access(path, F_OK) == 0;
}

static long long now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000ll + t.tv_nsec / 1000;
}

cl_int clGetDeviceInfo(cl_device_id d, cl_device_info what, size_t len, void *out, size_t *out_len)
{
	__typeof__(&clGetDeviceInfo) real = (__typeof__(real))dlsym(RTLD_NEXT, "clGetDeviceInfo");
	cl_int err = real(d, what, len, out, out_len);

	if (getenv("XC_GPU") && what == CL_DEVICE_TYPE && !err && out)
		*(cl_device_type *)out = CL_DEVICE_TYPE_GPU;
	return err;
}

static void note_capabilities(void)
{
	FILE *in = fopen("/proc/thread-self/status", "r"), *out;
	char path[512], line[256];

	snprintf(path, sizeof(path), "%s/caps", getenv("XC_FAULTS"));
	out = fopen(path, "a");
	while (in && out && fgets(line, sizeof(line), in))
		if (strncmp(line, "CapPrm:", 7) == 0)
			fputs(line + 8, out);
	if (in)
		fclose(in);
	if (out)
		fclose(out);
}

cl_context clCreateContext(const cl_context_properties *p, cl_uint n, const cl_device_id *d,
	void(CL_CALLBACK *told)(const char *, const void *, size_t, void *), void *arg, cl_int *err)
{
	__typeof__(&clCreateContext) real = (__typeof__(real))dlsym(RTLD_NEXT, "clCreateContext");

	if (getenv("XC_GPU"))
		note_capabilities();
	return real(p, n, d, told, arg, err);
}

cl_int clGetEventInfo(cl_event e, cl_event_info what, size_t len, void *out, size_t *out_len)
{
	__typeof__(&clGetEventInfo) real = (__typeof__(real))dlsym(RTLD_NEXT, "clGetEventInfo");
	const char *slow = getenv("XC_SLOW_US");
	cl_int err = real(e, what, len, out, out_len);
	static __thread long long last_us;
	cl_command_queue q = NULL;

	if (what != CL_EVENT_COMMAND_EXECUTION_STATUS || err || *(cl_int *)out != CL_COMPLETE)
		return err;
	real(e, CL_EVENT_COMMAND_QUEUE, sizeof(q), &q, NULL);
	if (fault("hang", q) || (slow && now_us() - last_us < atoll(slow)))
		*(cl_int *)out = CL_SUBMITTED;
	else
		last_us = now_us();
	return err;
}

cl_int clEnqueueNDRangeKernel(cl_command_queue q, cl_kernel k, cl_uint dim, const size_t *offset,
	const size_t *global, const size_t *local, cl_uint n, const cl_event *wait, cl_event *e)
{
	__typeof__(&clEnqueueNDRangeKernel) real =
		(__typeof__(real))dlsym(RTLD_NEXT, "clEnqueueNDRangeKernel");

	if (fault("", q))
		return CL_OUT_OF_RESOURCES;
	return real(q, k, dim, offset, global, local, n, wait, e);
}
