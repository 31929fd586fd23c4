// Package bench measures how fast a device runs a model (spec engine.md 9.5): loading, reading a prompt, and continuing a
// text token by token, plainly and with proposals.
//
//	Options ──► Run(ctx, device, model) ──► Report ──► Text(w) or JSON
//
// A measurement is the median of several runs after one that does not count, with the smallest and the largest. Tokens are
// picked greedily. In the same runs it is checked that everything is finite (the engine refuses to read back what is not)
// and that all runs, with proposals or without, pick the same tokens: otherwise the error wraps ErrDiffer and there is no
// report.
//
// Units. Rates are tokens per second, times are seconds, sizes are bytes. A token's bytes are those of compute.Reads at the
// middle of the tokens measured; what the device really moved can differ in either direction, by caches and by formats that
// it stores wider.
package bench
