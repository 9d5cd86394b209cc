/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Preloaded in front of the OpenCL loader by test_devices.py: as soon as the file $XC_FAULTS/N exists, the Nth device of the
 * first platform takes no more kernels, as one whose driver has reset it. */
#define _GNU_SOURCE
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
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

cl_int clEnqueueNDRangeKernel(cl_command_queue q, cl_kernel k, cl_uint dim, const size_t *offset,
	const size_t *global, const size_t *local, cl_uint n, const cl_event *wait, cl_event *e)
{
	__typeof__(&clEnqueueNDRangeKernel) real =
		(__typeof__(real))dlsym(RTLD_NEXT, "clEnqueueNDRangeKernel");
	const char *dir = getenv("XC_FAULTS");
	char path[512];

	if (dir && snprintf(path, sizeof(path), "%s/%u", dir, index_of(q)) < (int)sizeof(path) &&
		access(path, F_OK) == 0)
		return CL_OUT_OF_RESOURCES;
	return real(q, k, dim, offset, global, local, n, wait, e);
}
