#include "native.h"

#include <stdlib.h>
#include <string.h>

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

void pl_on_error(uint32_t type, const char *message, void *user) {
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

void pl_on_map(uint32_t status, void *user) { ((pl_state *)user)->map_status = (int)status; }

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

pl_state *pl_state_new(void) {
	pl_state *s = calloc(1, sizeof(pl_state));

	if (s) {
		s->patience = PL_PATIENCE;
	}
	return s;
}

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

void pl_release_instance(void *instance) { pl_guard(wgpuInstanceRelease, instance); }

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
	d.uncaptured.callback = pl_on_error;
	d.uncaptured.user = s;
	wgpuAdapterRequestDevice(adapter, &d, on_device, &r);
	return r.device;
}

// pl_lose does what a driver reset does through the callback. The library's own "destroy" does nothing in this version.
void pl_lose(pl_state *s, const char *message) { on_lost(1, message, s); }
