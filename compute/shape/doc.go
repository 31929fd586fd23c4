// Package shape makes model files of random weights with the sizes and weight formats of the catalogue's real models, so
// that speed can be measured without a download.
//
//	Find("1.7b")          a shape by its name or a part of it
//	   └─ Scaled(4)       the same with fewer layers
//	        └─ Open()     a virtual file: header in memory, weights made when they are read
//	             ├─ Part()    for compute.OpenModel
//	             └─ Save(ctx, path)   a real GGUF file
//
// Bytes. A weight format's blocks come from a pool of about a megabyte of random valid blocks; every quarter of a kilobyte
// of a tensor is copied from a place in the pool that depends on the tensor's name and the position alone. So any range can
// be read in any order at the speed of memory, equal names have equal weights whatever else is in the file, and a file is
// the same on every machine.
//
// Values. Matrices have a standard deviation of about 1/sqrt(columns), norms are around 1, and decays are those of a
// trained model (spec engine.md 9.1): hidden states stay finite through any number of layers, and logits differ enough
// for a choice of the best to be stable. What such a model says means nothing.
//
// Formats. Which tensor has which format follows from the sizes that spec engine.md 1.5 gives for the files: the layers'
// mean over the first four layers, embedding, head and draft block are equal to the byte, for the dense models and the 27B
// also the whole file without its header. Where several mixes have one size, the plainest is taken.
//
// A File may be read from any goroutine.
package shape
