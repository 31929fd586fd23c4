// Package compute runs a range of a model's layers on a device: it reads the model file, loads weights, records the
// model's graph in the vocabulary of compute/op, and picks tokens from the result.
//
//	OpenModel(parts)            header only: shapes, sizes, tokenizer; every tensor checked
//	   ├─ ShardSpec.Need(dev)   the device memory that loading takes
//	   └─ LoadShard(dev, spec)  weights lo..hi on a device, programs recorded once
//	         ├─ Embed / EmbedTop   tokens → embedding → layers [→ final norm, head]   (spec.Head, lo = 0)
//	         ├─ Hidden             hidden states → layers → hidden states             (lo < hi)
//	         ├─ Top / Tops         hidden states → final norm, head → candidates      (spec.Head)
//	         ├─ Verify             tokens → all of it, candidates after each          (the whole model)
//	         ├─ Control            undo, save, drop, reset, load what the layers remember
//	         ├─ Draft              hidden states and tokens → proposals               (spec.Draft)
//	         └─ Generate           a text → its continuation, on one device
//	Sampler, Lookup, Depth      candidates → a token; proposals from the text; how many to propose
//	Engine                      the same behind one value that a room drives
//
// Architectures are data: a graph says which pieces (attention, DeltaNet, a dense or a mixture-of-experts feed-forward
// network) a model's layers are made of and with which numbers. Each architecture is one function that reads its numbers
// and one entry in the table families. Nothing else branches on an architecture.
//
// Columns. A call works on tokens at consecutive positions, in pieces; one that Control shall be able to
// undo has op.MaxCols at most. Column c of a hidden state is elements c*Width to (c+1)*Width-1. Positions are written in
// order, from 0. Keys and values can be written again at any position: what was there is gone, and nothing above the
// position of a call is read. A recurrent layer's state can't: it stands at one position (Shard.At), and a call anywhere
// else is refused, except that position 0 is a new start. The ways back are an undo of the last call and a slot.
//
// Speculation. A verified column has the bits of that token run alone, so that proposals change the speed of an answer and
// never the answer. After a verify, Control{Rollback: c+1} leaves what column c and those before it did.
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
