// The C side of package gpu: the few calls of wgpu-native that the Go binding makes unsafely (spec engine.md 0.3 T4-T7)
// or that would allocate on every token. All handles are opaque pointers. shim_test.go pins the layout this relies on.
#ifndef POOLED_SHIM_H
#define POOLED_SHIM_H

#include <stddef.h>
#include <stdint.h>

#define PL_TEXT 1024
#define PL_PATIENCE 4.9 // seconds; the library's waiting poll gives up after 5 (its CLEANUP_WAIT_MS)

// pl_state is allocated by C and lives as long as the device, so that a late callback never writes into freed memory.
typedef struct pl_state {
	int lost;       // the device is gone
	int failed;     // an error was reported since the last pl_clear
	int memory;     // that error was an allocation the device refused
	int map_status; // -1 while a mapping is pending
	double patience; // seconds that a waiting poll may take
	char lost_text[PL_TEXT];
	char error_text[PL_TEXT];
} pl_state;

// pl_limits is WGPULimits of the header that ships with the binding, field for field.
typedef struct pl_limits {
	uint32_t max_texture_dimension_1d, max_texture_dimension_2d, max_texture_dimension_3d, max_texture_array_layers;
	uint32_t max_bind_groups, max_bind_groups_plus_vertex_buffers, max_bindings_per_bind_group;
	uint32_t max_dynamic_uniform_buffers, max_dynamic_storage_buffers;
	uint32_t max_sampled_textures, max_samplers, max_storage_buffers, max_storage_textures, max_uniform_buffers;
	uint64_t max_uniform_binding, max_storage_binding;
	uint32_t min_uniform_alignment, min_storage_alignment, max_vertex_buffers;
	uint64_t max_buffer_size;
	uint32_t max_vertex_attributes, max_vertex_stride, max_inter_stage_components, max_inter_stage_variables;
	uint32_t max_color_attachments, max_color_bytes;
	uint32_t max_workgroup_storage, max_invocations, max_size_x, max_size_y, max_size_z, max_workgroups;
} pl_limits;

// pl_step is one dispatch. frame is the dynamic offset of the frame record (bind group 0). copies is how many of the copies are
// done before it, in their order; that ends the pass that is under way.
typedef struct pl_step {
	void *pipeline;
	void *group;
	uint32_t x, y, z;
	uint32_t frame;
	uint32_t copies;
} pl_step;

// pl_copy moves bytes between buffers; without a source it clears them.
typedef struct pl_copy {
	void *src, *dst;
	uint64_t src_off, dst_off, size;
} pl_copy;

// pl_guard calls call(arg) and says whether a panic of the library ended it (guard.c).
int pl_guard(void (*call)(void *), void *arg);

pl_state *pl_state_new(void);
void pl_state_free(pl_state *s);
void pl_clear(pl_state *s);

void pl_log_install(int level);

void *pl_create_instance(uint32_t backends);
void pl_release_instance(void *instance);
void pl_default_limits(pl_limits *limits);
void pl_adapter_limits(void *adapter, pl_limits *limits);
void pl_device_limits(void *device, pl_limits *limits);
void *pl_request_device(pl_state *s, void *adapter, const pl_limits *limits, const char *label);
void pl_lose(pl_state *s, const char *message);

// pl_create_buffer returns NULL after an error.
void *pl_create_buffer(pl_state *s, void *device, const char *label, uint32_t usage, uint64_t size);
int pl_write(pl_state *s, void *device, void *queue, void *buffer, uint64_t offset, const void *data, size_t size);
void pl_flush(pl_state *s, void *device, void *queue, int slow);
void pl_poll(pl_state *s, void *device);
void pl_wait(pl_state *s, void *device, int slow);
void pl_release(pl_state *s, void *device);
uint64_t pl_buffer_size(void *buffer);

// pl_encode records the steps, one pass unless copies come between, and then the other copies; NULL after an error. What it returns goes to pl_submit_commands or pl_drop_commands, once.
void *pl_encode(pl_state *s, void *device, void *frame_group, const pl_step *steps, size_t n_steps,
	const pl_copy *copies, size_t n_copies);
int pl_submit_commands(pl_state *s, void *queue, void *commands);
void pl_drop_commands(void *commands);
const void *pl_map(pl_state *s, void *device, void *buffer, size_t size, int slow);
void pl_unmap(void *buffer);

#endif
