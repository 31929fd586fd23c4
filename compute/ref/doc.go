// Package ref runs the graphs of compute/op in plain Go on the processor. It is the slow twin that every kernel is
// compared with, and the engine of machines without a usable GPU.
//
// Arithmetic. Activations are float32, as on a GPU. Every sum (mean of squares, dot product, softmax) is accumulated in
// float64 and rounded to float32 once. Weights stay in their file format in memory; a row is decoded with compute/quant
// just before it is used. Cached keys and values are stored as halves (rounded to nearest even) or as float32.
//
// Bit contract. A value is computed by one worker in one fixed order that depends on nothing but its own column, row
// or head. So results don't depend on the number of columns in a run, nor on the number of workers.
//
// Workers. A Run uses at most as many goroutines as the device has workers (GOMAXPROCS at Open): its own and helpers
// that it starts and waits for. Runs of one device take turns, whoever calls. Cancelling the context ends a Run
// between two operations.
//
// Limits. A buffer, weight or cache of more than 16 GiB is refused. Wrong arguments come back as errors: from Load,
// Buffer, KV and Rope at once, from a Builder's methods when Build is called, from a Frame when Run is called.
package ref
