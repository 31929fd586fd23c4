#include "native.h"

#include <stdio.h>
#ifdef _WIN32
#include <windows.h>
#else
#include <time.h>
#endif

// The calls of an open device. The library panics in them when the driver fails in a way that it has no error for, so that each is made
// under pl_guard.

typedef struct call {
	pl_state *s;
	void *device, *queue, *buffer, *commands, *frame_group;
	const pl_step *steps;
	const pl_copy *copies;
	size_t n_steps, n_copies;
	const char *label;
	const void *data;
	uint64_t offset, size;
	uint32_t usage, wait, done;
} call;

// guard makes the call unless the device is lost; a panic loses it. It says whether the device is there.
static int guard(pl_state *s, const char *during, void (*fn)(void *), call *c) {
	c->s = s;
	if (!s->lost && pl_guard(fn, c)) {
		s->lost = 1;
		snprintf(s->lost_text, PL_TEXT, "the graphics driver gave up during a %s: it was reset or removed, or had no memory left", during);
	}
	return !s->lost;
}

static void push_scopes(void *device) {
	wgpuDevicePushErrorScope(device, filter_memory);
	wgpuDevicePushErrorScope(device, filter_validation);
}

static void pop_scopes(void *device, pl_state *s) {
	wgpuDevicePopErrorScope(device, pl_on_error, s);
	wgpuDevicePopErrorScope(device, pl_on_error, s);
}

// --- buffers ---

static void create_buffer(void *p) {
	call *c = p;
	buffer_descriptor d = {NULL, c->label, c->usage, c->size, 0};

	push_scopes(c->device);
	c->buffer = wgpuDeviceCreateBuffer(c->device, &d);
	pop_scopes(c->device, c->s);
}

void *pl_create_buffer(pl_state *s, void *device, const char *label, uint32_t usage, uint64_t size) {
	call c = {.device = device, .label = label, .usage = usage, .size = size};

	if (guard(s, "allocation", create_buffer, &c) && !s->failed) {
		wgpuDeviceReference(device); // the binding's Buffer gives one up
		return c.buffer;
	}
	if (c.buffer != NULL) {
		wgpuBufferRelease(c.buffer);
	}
	return NULL;
}

uint64_t pl_buffer_size(void *buffer) { return wgpuBufferGetSize(buffer); }

static void write_buffer(void *p) {
	call *c = p;

	push_scopes(c->device);
	wgpuQueueWriteBuffer(c->queue, c->buffer, c->offset, c->data, c->size);
	pop_scopes(c->device, c->s);
}

int pl_write(pl_state *s, void *device, void *queue, void *buffer, uint64_t offset, const void *data, size_t size) {
	call c = {.device = device, .queue = queue, .buffer = buffer, .offset = offset, .data = data, .size = size};

	return !guard(s, "write", write_buffer, &c) || s->failed;
}

// --- waiting ---

// now is the time in seconds of a clock that only goes forward.
static double now(void) {
#ifdef _WIN32
	return GetTickCount64() / 1e3;
#else
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
#endif
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

static void call_poll(void *p) {
	call *c = p;
	c->done = wgpuDevicePoll(c->device, c->wait, NULL);
}

// poll says whether the queue is empty, which that of a lost device is. A wait that took as long as the library has patience
// for was given up: what the commands use may be freed or written from then on, so that the device is not used any more.
static uint32_t poll(pl_state *s, void *device, uint32_t wait) {
	call c = {.device = device, .wait = wait};
	double began = wait ? now() : 0;

	if (!guard(s, "wait", call_poll, &c)) {
		return 1;
	}
	if (wait && now() - began >= s->patience) {
		s->lost = 1;
		snprintf(s->lost_text, PL_TEXT, "it did not finish its work within %.0f seconds", s->patience);
	}
	return c.done;
}

void pl_poll(pl_state *s, void *device) { poll(s, device, 0); }

// pl_wait returns when the queue is empty. The library's own waiting poll gives up after 5 seconds and then frees what is still
// in use, so a slow device is asked again and again instead.
void pl_wait(pl_state *s, void *device, int slow) {
	long waited = 0;

	if (!slow) {
		poll(s, device, 1);
		return;
	}
	while (!poll(s, device, 0)) {
		waited = nap(waited);
	}
}

// --- commands ---

static void copy_buffers(void *encoder, const pl_copy *copies, size_t n) {
	size_t i;

	for (i = 0; i < n; i++) {
		const pl_copy *y = &copies[i];
		if (y->src == NULL) {
			wgpuCommandEncoderClearBuffer(encoder, y->dst, y->dst_off, y->size);
		} else {
			wgpuCommandEncoderCopyBufferToBuffer(encoder, y->src, y->src_off, y->dst, y->dst_off, y->size);
		}
	}
}

// encode_steps records the steps with the copies between them, and returns how many copies those were.
static size_t encode_steps(void *encoder, const call *c) {
	void *pass = wgpuCommandEncoderBeginComputePass(encoder, NULL);
	void *pipeline = NULL;
	uint32_t frame = 0;
	size_t i, done = 0;
	int fresh = 1;

	for (i = 0; i < c->n_steps; i++) {
		const pl_step *st = &c->steps[i];
		if (st->copies > 0) {
			wgpuComputePassEncoderEnd(pass);
			wgpuComputePassEncoderRelease(pass);
			copy_buffers(encoder, c->copies + done, st->copies);
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
			wgpuComputePassEncoderSetBindGroup(pass, 0, c->frame_group, 1, &frame);
		}
		wgpuComputePassEncoderSetBindGroup(pass, 1, st->group, 0, NULL);
		wgpuComputePassEncoderDispatchWorkgroups(pass, st->x, st->y, st->z);
	}
	wgpuComputePassEncoderEnd(pass);
	wgpuComputePassEncoderRelease(pass);
	return done;
}

static void encode(void *p) {
	call *c = p;
	void *encoder;
	size_t done = 0;

	push_scopes(c->device);
	encoder = wgpuDeviceCreateCommandEncoder(c->device, NULL);
	if (c->n_steps > 0) {
		done = encode_steps(encoder, c);
	}
	copy_buffers(encoder, c->copies + done, c->n_copies - done);
	c->commands = wgpuCommandEncoderFinish(encoder, NULL);
	pop_scopes(c->device, c->s);
	wgpuCommandEncoderRelease(encoder);
}

// pl_encode gives nothing to submit after an error: a bad submit ends the process (T6).
void *pl_encode(pl_state *s, void *device, void *frame_group, const pl_step *steps, size_t n_steps,
	const pl_copy *copies, size_t n_copies) {
	call c = {.device = device, .frame_group = frame_group, .steps = steps, .n_steps = n_steps, .copies = copies, .n_copies = n_copies};

	if ((!guard(s, "recording", encode, &c) || s->failed) && c.commands != NULL) {
		wgpuCommandBufferRelease(c.commands);
		return NULL;
	}
	return c.commands;
}

static void submit(void *p) {
	call *c = p;
	wgpuQueueSubmitForIndex(c->queue, c->commands != NULL, &c->commands);
}

int pl_submit_commands(pl_state *s, void *queue, void *commands) {
	call c = {.queue = queue, .commands = commands};

	guard(s, "submit", submit, &c);
	wgpuCommandBufferRelease(commands);
	return s->failed || s->lost;
}

void pl_drop_commands(void *commands) { wgpuCommandBufferRelease(commands); }

void pl_flush(pl_state *s, void *device, void *queue, int slow) {
	call c = {.queue = queue};

	if (guard(s, "submit", submit, &c)) {
		pl_wait(s, device, slow);
	}
}

// --- results ---

static void map(void *p) {
	call *c = p;

	push_scopes(c->device);
	wgpuBufferMapAsync(c->buffer, map_read, 0, c->size, pl_on_map, c->s);
	pop_scopes(c->device, c->s);
}

static void mapped_range(void *p) {
	call *c = p;
	c->data = wgpuBufferGetConstMappedRange(c->buffer, 0, c->size);
}

// pl_map waits until the buffer's first size bytes can be read. The flag it waits for lives in C memory (T4).
const void *pl_map(pl_state *s, void *device, void *buffer, size_t size, int slow) {
	call c = {.device = device, .buffer = buffer, .size = size};
	long waited = 0;

	s->map_status = -1;
	guard(s, "map", map, &c);
	while (s->map_status == -1 && !s->failed && !s->lost) {
		if (poll(s, device, !slow) && s->map_status == -1) {
			return NULL; // the queue is empty and nobody will call
		}
		if (slow && s->map_status == -1) {
			waited = nap(waited);
		}
	}
	if (s->map_status != 0 || s->failed || s->lost) {
		return NULL;
	}
	guard(s, "map", mapped_range, &c);
	return c.data;
}

void pl_unmap(void *buffer) { wgpuBufferUnmap(buffer); }

// --- the end ---

static void release(void *p) { wgpuDeviceRelease(((call *)p)->device); }

// pl_release gives up the device, whether it is lost or not.
void pl_release(pl_state *s, void *device) {
	call c = {.device = device};

	s->lost = 0;
	guard(s, "release", release, &c);
}
