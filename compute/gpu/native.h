// What this package uses of wgpu-native, as declared by the header that ships with the binding (v0.23.0), which is not on the include
// path here. All handles are opaque pointers.
#ifndef POOLED_NATIVE_H
#define POOLED_NATIVE_H

#include "shim.h"

typedef struct chained { const struct chained *next; uint32_t type; } chained;
typedef struct required_limits { const chained *next; pl_limits limits; } required_limits;
typedef struct supported_limits { chained *next; pl_limits limits; } supported_limits;
typedef struct instance_extras {
	chained chain;
	uint32_t backends, flags, dx12_compiler, gles3_minor;
	const char *dxil_path, *dxc_path;
} instance_extras;
typedef struct instance_descriptor { const chained *next; } instance_descriptor;
typedef struct native_limits { uint32_t push_constants, non_sampler_bindings; } native_limits;
typedef struct required_extras { chained chain; native_limits limits; } required_extras;
typedef struct queue_descriptor { const chained *next; const char *label; } queue_descriptor;
typedef void (*lost_callback)(uint32_t reason, const char *message, void *user);
typedef void (*error_callback)(uint32_t type, const char *message, void *user);
typedef void (*map_callback)(uint32_t status, void *user);
typedef void (*device_callback)(uint32_t status, void *device, const char *message, void *user);
typedef void (*log_callback)(uint32_t level, const char *message, void *user);
typedef struct uncaptured_info { const chained *next; error_callback callback; void *user; } uncaptured_info;
typedef struct device_descriptor {
	const chained *next;
	const char *label;
	size_t feature_count;
	const uint32_t *features;
	const required_limits *limits;
	queue_descriptor queue;
	lost_callback lost;
	void *lost_user;
	uncaptured_info uncaptured;
} device_descriptor;
typedef struct buffer_descriptor {
	const chained *next;
	const char *label;
	uint32_t usage;
	uint64_t size;
	uint32_t mapped;
} buffer_descriptor;

enum { extras_type = 0x00030002, instance_type = 0x00030006, map_read = 1, filter_validation = 0, filter_memory = 1 };
enum { error_none = 0, error_memory = 2, error_lost = 5 };

extern void *wgpuCreateInstance(const instance_descriptor *);
extern uint32_t wgpuAdapterGetLimits(void *, supported_limits *);
extern uint32_t wgpuDeviceGetLimits(void *, supported_limits *);
extern void wgpuAdapterRequestDevice(void *, const device_descriptor *, device_callback, void *);
extern uint32_t wgpuDevicePoll(void *, uint32_t wait, const void *index);
extern void wgpuDevicePushErrorScope(void *, uint32_t filter);
extern void wgpuDevicePopErrorScope(void *, error_callback, void *);
extern void *wgpuDeviceCreateBuffer(void *, const buffer_descriptor *);
extern void wgpuDeviceReference(void *);
extern void wgpuDeviceRelease(void *);
extern void wgpuInstanceRelease(void *);
extern void *wgpuDeviceCreateCommandEncoder(void *, const void *);
extern void *wgpuCommandEncoderBeginComputePass(void *, const void *);
extern void wgpuCommandEncoderCopyBufferToBuffer(void *, void *, uint64_t, void *, uint64_t, uint64_t);
extern void wgpuCommandEncoderClearBuffer(void *, void *, uint64_t, uint64_t);
extern void *wgpuCommandEncoderFinish(void *, const void *);
extern void wgpuCommandEncoderRelease(void *);
extern void wgpuComputePassEncoderSetPipeline(void *, void *);
extern void wgpuComputePassEncoderSetBindGroup(void *, uint32_t, void *, size_t, const uint32_t *);
extern void wgpuComputePassEncoderDispatchWorkgroups(void *, uint32_t, uint32_t, uint32_t);
extern void wgpuComputePassEncoderEnd(void *);
extern void wgpuComputePassEncoderRelease(void *);
extern void wgpuCommandBufferRelease(void *);
extern uint64_t wgpuQueueSubmitForIndex(void *, size_t, void *const *);
extern void wgpuQueueWriteBuffer(void *, void *, uint64_t, const void *, size_t);
extern void wgpuBufferMapAsync(void *, uint32_t mode, size_t, size_t, map_callback, void *);
extern const void *wgpuBufferGetConstMappedRange(void *, size_t, size_t);
extern void wgpuBufferUnmap(void *);
extern void wgpuBufferRelease(void *);
extern uint64_t wgpuBufferGetSize(void *);
extern void wgpuSetLogCallback(log_callback, void *);
extern void wgpuSetLogLevel(uint32_t);

// Of shim.c: callbacks that write to a pl_state.
void pl_on_error(uint32_t type, const char *message, void *user);
void pl_on_map(uint32_t status, void *user);

#endif
