#include "shim.h"

#include <stdlib.h>
#include <string.h>
#ifdef _WIN32
#include <windows.h>
#else
#include <time.h>
#endif

// --- wgpu-native, as declared by the header that ships with the binding (v0.23.0) ---

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

enum { extras_type = 0x00030002, instance_type = 0x00030006, map_read = 1, filter_validation = 0, filter_memory = 1 };
enum { error_none = 0, error_memory = 2, error_lost = 5 };

extern void *wgpuCreateInstance(const instance_descriptor *);
extern uint32_t wgpuAdapterGetLimits(void *, supported_limits *);
extern uint32_t wgpuDeviceGetLimits(void *, supported_limits *);
extern void wgpuAdapterRequestDevice(void *, const device_descriptor *, device_callback, void *);
extern uint32_t wgpuDevicePoll(void *, uint32_t wait, const void *index);
extern void wgpuDevicePushErrorScope(void *, uint32_t filter);
extern void wgpuDevicePopErrorScope(void *, error_callback, void *);
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
extern uint64_t wgpuBufferGetSize(void *);
extern void wgpuSetLogCallback(log_callback, void *);
extern void wgpuSetLogLevel(uint32_t);

// --- callbacks ---

static void keep(char *dst, const char *message) {
	strncpy(dst, message ? message : "", PL_TEXT - 1);
	dst[PL_TEXT - 1] = 0;
}

static void on_lost(uint32_t reason, const char *message, void *user) {
	pl_state *s = user;
	(void)reason;
	s->lost = 1;
	keep(s->lost_text, message);
}

static void on_error(uint32_t type, const char *message, void *user) {
	pl_state *s = user;
	if (type == error_none) {
		return;
	}
	if (!s->failed) {
		keep(s->error_text, message);
	}
	s->failed = 1;
	if (type == error_memory) {
		s->memory = 1;
	}
	if (type == error_lost) {
		s->lost = 1;
		keep(s->lost_text, message);
	}
}

static void on_map(uint32_t status, void *user) { ((pl_state *)user)->map_status = (int)status; }

typedef struct request { pl_state *state; void *device; } request;

static void on_device(uint32_t status, void *device, const char *message, void *user) {
	request *r = user;
	if (status == 0) {
		r->device = device;
		return;
	}
	r->state->failed = 1;
	keep(r->state->error_text, message);
}

extern void pooledGPULog(uint32_t level, char *message);

static void on_log(uint32_t level, const char *message, void *user) {
	(void)user;
	pooledGPULog(level, (char *)message);
}

// --- calls ---

pl_state *pl_state_new(void) { return calloc(1, sizeof(pl_state)); }
void pl_state_free(pl_state *s) { free(s); }
void pl_clear(pl_state *s) { s->failed = s->memory = 0; }

void pl_log_install(int level) {
	wgpuSetLogCallback(on_log, NULL);
	wgpuSetLogLevel((uint32_t)level);
}

// pl_create_instance exists because the binding leaves two fields of the descriptor uninitialized: with an unlucky heap the
// library panics over "Unknown gles3 minor version", which ends the process.
void *pl_create_instance(uint32_t backends) {
	instance_extras extras = {{NULL, instance_type}, backends, 0, 0, 0, NULL, NULL};
	instance_descriptor d = {&extras.chain};

	return wgpuCreateInstance(&d);
}

// pl_default_limits sets every field to the "undefined" value, which asks for WebGPU's default.
void pl_default_limits(pl_limits *limits) { memset(limits, 0xff, sizeof *limits); }

// The binding hands an uninitialized chain to these two (T1).
void pl_adapter_limits(void *adapter, pl_limits *limits) {
	supported_limits s;

	memset(&s, 0, sizeof s);
	wgpuAdapterGetLimits(adapter, &s);
	*limits = s.limits;
}

void pl_device_limits(void *device, pl_limits *limits) {
	supported_limits s;

	memset(&s, 0, sizeof s);
	wgpuDeviceGetLimits(device, &s);
	*limits = s.limits;
}

void *pl_request_device(pl_state *s, void *adapter, const pl_limits *limits, const char *label) {
	required_extras extras = {{NULL, extras_type}, {0, 0}};
	required_limits required = {&extras.chain, *limits};
	device_descriptor d;
	request r = {s, NULL};

	memset(&d, 0, sizeof d);
	d.label = label;
	d.limits = &required;
	d.lost = on_lost;
	d.lost_user = s;
	d.uncaptured.callback = on_error;
	d.uncaptured.user = s;
	wgpuAdapterRequestDevice(adapter, &d, on_device, &r);
	return r.device;
}

// pl_lose does what a driver reset does through the callback. The library's own "destroy" does nothing in this version.
void pl_lose(pl_state *s, const char *message) { on_lost(1, message, s); }

int pl_write(pl_state *s, void *device, void *queue, void *buffer, uint64_t offset, const void *data, size_t size) {
	wgpuDevicePushErrorScope(device, filter_validation);
	wgpuQueueWriteBuffer(queue, buffer, offset, data, size);
	wgpuDevicePopErrorScope(device, on_error, s);
	return s->failed;
}

// nap sleeps a sixteenth of what was waited so far, 20 us to 2 ms, and returns the new total in microseconds.
static long nap(long waited) {
	long us = waited / 16;

	us = us < 20 ? 20 : us > 2000 ? 2000 : us;
#ifdef _WIN32
	Sleep(us < 1000 ? 0 : 1);
#else
	struct timespec t = {0, us * 1000};
	nanosleep(&t, NULL);
#endif
	return waited + us;
}

void pl_poll(void *device) { wgpuDevicePoll(device, 0, NULL); }

// pl_wait returns when the queue is empty. The library's own waiting poll gives up after 5 seconds and then frees what is still
// in use, so a slow device is asked again and again instead.
void pl_wait(void *device, int slow) {
	long waited = 0;

	if (!slow) {
		wgpuDevicePoll(device, 1, NULL);
		return;
	}
	while (!wgpuDevicePoll(device, 0, NULL)) {
		waited = nap(waited);
	}
}

void pl_flush(void *device, void *queue, int slow) {
	wgpuQueueSubmitForIndex(queue, 0, NULL);
	pl_wait(device, slow);
}

uint64_t pl_buffer_size(void *buffer) { return wgpuBufferGetSize(buffer); }

static void copy_buffers(void *encoder, const pl_copy *copies, size_t n) {
	size_t i;

	for (i = 0; i < n; i++) {
		const pl_copy *c = &copies[i];
		if (c->src == NULL) {
			wgpuCommandEncoderClearBuffer(encoder, c->dst, c->dst_off, c->size);
		} else {
			wgpuCommandEncoderCopyBufferToBuffer(encoder, c->src, c->src_off, c->dst, c->dst_off, c->size);
		}
	}
}

// encode records the steps with the copies between them, and returns how many copies those were.
static size_t encode(void *encoder, void *frame_group, const pl_step *steps, size_t n_steps, const pl_copy *copies) {
	void *pass = wgpuCommandEncoderBeginComputePass(encoder, NULL);
	void *pipeline = NULL;
	uint32_t frame = 0;
	size_t i, done = 0;
	int fresh = 1;

	for (i = 0; i < n_steps; i++) {
		const pl_step *st = &steps[i];
		if (st->copies > 0) {
			wgpuComputePassEncoderEnd(pass);
			wgpuComputePassEncoderRelease(pass);
			copy_buffers(encoder, copies + done, st->copies);
			done += st->copies;
			pass = wgpuCommandEncoderBeginComputePass(encoder, NULL);
			pipeline = NULL;
			fresh = 1;
		}
		if (st->pipeline != pipeline) {
			pipeline = st->pipeline;
			wgpuComputePassEncoderSetPipeline(pass, pipeline);
		}
		if (fresh || st->frame != frame) {
			fresh = 0;
			frame = st->frame;
			wgpuComputePassEncoderSetBindGroup(pass, 0, frame_group, 1, &frame);
		}
		wgpuComputePassEncoderSetBindGroup(pass, 1, st->group, 0, NULL);
		wgpuComputePassEncoderDispatchWorkgroups(pass, st->x, st->y, st->z);
	}
	wgpuComputePassEncoderEnd(pass);
	wgpuComputePassEncoderRelease(pass);
	return done;
}

// pl_encode gives nothing to submit after an error: a bad submit ends the process (T6).
void *pl_encode(pl_state *s, void *device, void *frame_group, const pl_step *steps, size_t n_steps,
	const pl_copy *copies, size_t n_copies) {
	void *encoder, *commands;
	size_t done = 0;

	wgpuDevicePushErrorScope(device, filter_memory);
	wgpuDevicePushErrorScope(device, filter_validation);
	encoder = wgpuDeviceCreateCommandEncoder(device, NULL);
	if (n_steps > 0) {
		done = encode(encoder, frame_group, steps, n_steps, copies);
	}
	copy_buffers(encoder, copies + done, n_copies - done);
	commands = wgpuCommandEncoderFinish(encoder, NULL);
	wgpuDevicePopErrorScope(device, on_error, s);
	wgpuDevicePopErrorScope(device, on_error, s);
	wgpuCommandEncoderRelease(encoder);
	if ((s->failed || s->lost) && commands != NULL) {
		wgpuCommandBufferRelease(commands);
		return NULL;
	}
	return commands;
}

int pl_submit_commands(pl_state *s, void *queue, void *commands) {
	wgpuQueueSubmitForIndex(queue, 1, &commands);
	wgpuCommandBufferRelease(commands);
	return s->failed || s->lost;
}

void pl_drop_commands(void *commands) { wgpuCommandBufferRelease(commands); }

// pl_map waits until the buffer's first size bytes can be read. The flag it waits for lives in C memory (T4).
const void *pl_map(pl_state *s, void *device, void *buffer, size_t size, int slow) {
	long waited = 0;

	s->map_status = -1;
	wgpuDevicePushErrorScope(device, filter_validation);
	wgpuBufferMapAsync(buffer, map_read, 0, size, on_map, s);
	wgpuDevicePopErrorScope(device, on_error, s);
	while (s->map_status == -1 && !s->failed && !s->lost) {
		if (wgpuDevicePoll(device, !slow, NULL) && s->map_status == -1) {
			return NULL; // the queue is empty and nobody will call
		}
		if (slow && s->map_status == -1) {
			waited = nap(waited);
		}
	}
	if (s->map_status != 0 || s->failed || s->lost) {
		return NULL;
	}
	return wgpuBufferGetConstMappedRange(buffer, 0, size);
}

void pl_unmap(void *buffer) { wgpuBufferUnmap(buffer); }
