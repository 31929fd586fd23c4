// Package compute runs a range of a model's layers on a device: it reads the model file, loads weights, records the
// model's graph in the vocabulary of compute/op, and picks tokens from the result.
//
//	OpenModel(parts)            header only: shapes, sizes, tokenizer; every tensor checked
//	   └─ LoadShard(dev, spec)  weights lo..hi on a device, three programs recorded once
//	         ├─ Embed / EmbedTop   tokens → embedding → layers [→ final norm, head]   (spec.Head, lo = 0)
//	         ├─ Hidden             hidden states → layers → hidden states             (lo < hi)
//	         └─ Top                hidden state → final norm, head → candidates       (spec.Head)
//	Sampler                     candidates → a token
//	Engine                      the same behind one value that a room drives
//
// Architectures are data: each is one file with an implementation of graph and one entry in the table families. Nothing
// outside that file branches on an architecture.
//
// Columns. A call works on 1 to op.MaxCols tokens at consecutive positions. Column c of a hidden state is elements
// c*Width to (c+1)*Width-1. Positions must be written in order, from 0; writing a position again overwrites it, and
// nothing above the position of a call is read.
//
// Head. The final norm and the output matrix together are the head. Most small models are tied: their output matrix is
// the embedding table. A tied shard holds that matrix once on the device and HeadBytes is 0; an untied one loads both.
//
// Ownership. A Model reads its parts when it is asked for weights or the tokenizer; who opened the parts closes them,
// after the last use of the Model. A Shard owns what it made on the device and leaves the device open. Results are
// slices of the Shard, overwritten by its next call.
//
// Concurrency. A Model may be used from any goroutine. A Shard and an Engine take one call at a time.
//
// Units. Sizes are bytes, positions and widths are counts of tokens and of float32 values.
package compute
