// Package gpu runs package op's programs on a GPU: Vulkan on Linux, Metal on macOS, Direct3D 12 on Windows, through the
// WebGPU binding, of which it is the only importer. The kernels are in package shaders.
//
//	callers ──► Device.jobs ──► device goroutine ──► shim.c, binding ──► GPU
//	            (one at a time)  (locked to a thread)
//
// Threads. One goroutine per device, started by Open, ended and waited for by Close, is the only one that touches the
// binding (spec engine.md 0.3 T16). Every method hands it a job and waits. Programs of one device therefore run one after
// the other; a caller that gave up (its context ended) before its job began has changed nothing, a job that began is waited for.
//
// Memory. Everything made by a Device is released by its own Close, by Device.Close at the latest, on the device goroutine. Only the
// library's instance, and with it the loaded driver, stays until the process ends (instance.go).
// Used counts the bytes of all buffers. Buffers are at most 1 GiB; a weight that doesn't fit in one binding is
// cut into pieces by rows, one launch each. Weights keep their format: loading moves bytes, never changes values
// (format.go), 8 MiB at a time through the library's staging memory, of which at most 32 MiB are in use.
//
// Matrices that one launch can read together (the same input, the same format) are moved behind each other by the first Build
// that wants that (merge.go). Slots of a Memory are buffers of their own.
//
// A run. Build makes pipelines and bind groups. Run writes the frame (position, columns, tokens) into a ring of uniforms, and
// in one call to C encodes one compute pass, submits it and maps the result, copied into one staging buffer: one submit, one
// readback of just what was asked, no allocation in Go (ahead.go says when the encoding was done before). Three things follow from the frame: the number of columns (matrices
// have one kernel for one column and one for four at a time), the splits of attention, and whether
// candidates are wanted. A column's bits depend on none of them (package op's contract): all products are summed with fma in
// the same order in both kernels, whatever else the program holds, and attention cuts a column's positions by that column's own position.
//
// Errors. Building, loading or running fails with op.ErrMemory, op.ErrKernel, op.ErrFormat or op.ErrNotFinite, and after a loss
// of the device every call fails with op.ErrLost until it is closed; then another can be opened. The library panics when a driver fails in
// a call that returns no error, and when a faulty command buffer is submitted: on Linux such a panic is caught and makes a loss (guard.c;
// loss_test.go has a driver that fails), elsewhere it ends the process. Command buffers are validated before (T6). The library logs to
// the terminal, so Open routes its words to Options.Log (T17); only the text of a panic goes to file descriptor 2.
//
// Beyond the sheet, found here: the binding's CreateInstance passes uninitialized fields ("Unknown gles3 minor version" and an
// abort, now and then), so instances are made in shim.c; the library's waiting poll gives up after five seconds and frees
// what the GPU still uses, so that slow adapters are asked without waiting, a long run is cut into several submits (launch.go), and a
// wait that was given up all the same is a loss; and NVIDIA's driver can't be loaded more than about thirty times in a process, so that
// there is one instance for all devices (instance.go).
package gpu
