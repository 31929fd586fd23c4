// A Vulkan loader for tests: it passes every call on to the real one, but makes some fail while the environment variable
// POOLED_FAULT names them, as in "submit=-4,poll=-4" (VkResult values: -4 a lost device, -1 and -2 no memory, -3 no device, 2 a timeout).
// loss_test.go builds it as libvulkan.so.1 and puts it in front of the real one, whose path is in POOLED_VULKAN.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef void (*function)(void);
typedef function (*lookup)(void *owner, const char *name);

static lookup in_instance, in_device;
static void *device;
static int32_t (*wait_idle)(void *device);

// fault is the result that a kind of call shall have, 0 for its own. A device that is lost does no more work; to be sure of that what
// runs is waited for.
static int32_t fault(const char *kind) {
	const char *list = getenv("POOLED_FAULT"), *at = list ? strstr(list, kind) : NULL;

	if (at == NULL || at[strlen(kind)] != '=') {
		return 0;
	}
	if (device != NULL && wait_idle != NULL) {
		wait_idle(device);
	}
	return atoi(at + strlen(kind) + 1);
}

#define FAULTY(kind, name, types, values) \
	static int32_t (*real_##name) types; \
	static int32_t faulty_##name types { \
		int32_t wrong = fault(kind); \
		return wrong ? wrong : real_##name values; \
	}

FAULTY("submit", vkQueueSubmit, (void *q, uint32_t n, const void *s, uint64_t f), (q, n, s, f))
FAULTY("wait", vkWaitSemaphores, (void *d, const void *i, uint64_t t), (d, i, t))
FAULTY("wait", vkWaitSemaphoresKHR, (void *d, const void *i, uint64_t t), (d, i, t))
FAULTY("wait", vkWaitForFences, (void *d, uint32_t n, const void *f, uint32_t all, uint64_t t), (d, n, f, all, t))
FAULTY("poll", vkGetSemaphoreCounterValue, (void *d, uint64_t s, uint64_t *v), (d, s, v))
FAULTY("poll", vkGetSemaphoreCounterValueKHR, (void *d, uint64_t s, uint64_t *v), (d, s, v))
FAULTY("poll", vkGetFenceStatus, (void *d, uint64_t f), (d, f))
FAULTY("memory", vkAllocateMemory, (void *d, const void *i, const void *a, uint64_t *m), (d, i, a, m))
FAULTY("pipeline", vkCreateComputePipelines, (void *d, uint64_t c, uint32_t n, const void *i, const void *a, uint64_t *p), (d, c, n, i, a, p))
FAULTY("device", vkCreateDevice, (void *p, const void *i, const void *a, void **d), (p, i, a, d))

static function device_function(void *d, const char *name);

static function wrapped(const char *name, function real) {
#define WRAP(f) \
	if (real != NULL && strcmp(name, #f) == 0) { \
		real_##f = (void *)real; \
		return (function)faulty_##f; \
	}
	WRAP(vkQueueSubmit)
	WRAP(vkWaitSemaphores)
	WRAP(vkWaitSemaphoresKHR)
	WRAP(vkWaitForFences)
	WRAP(vkGetSemaphoreCounterValue)
	WRAP(vkGetSemaphoreCounterValueKHR)
	WRAP(vkGetFenceStatus)
	WRAP(vkAllocateMemory)
	WRAP(vkCreateComputePipelines)
	WRAP(vkCreateDevice)
	if (strcmp(name, "vkGetDeviceProcAddr") == 0) {
		in_device = (lookup)real;
		return (function)device_function;
	}
	return real;
}

static function device_function(void *d, const char *name) {
	device = d;
	wait_idle = (void *)in_device(d, "vkDeviceWaitIdle");
	return wrapped(name, in_device(d, name));
}

function vkGetInstanceProcAddr(void *instance, const char *name) {
	if (in_instance == NULL) {
		in_instance = (lookup)dlsym(dlopen(getenv("POOLED_VULKAN"), RTLD_NOW | RTLD_LOCAL), "vkGetInstanceProcAddr");
	}
	return wrapped(name, in_instance(instance, name));
}
