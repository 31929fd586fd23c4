package op

// Sketch is what the memory of a program itself depends on. A graph that is only sketched makes nothing: so the memory
// that a graph needs is known before anything is loaded.
type Sketch struct {
	Cols    int           // columns that a run may have
	Steps   int           // operations recorded
	Attend  []AttendSize  // each different one
	Experts []ExpertsSize // each different one
	Embeds  bool          // has an Embed
	Logits  int           // width of Logits' buffer; 0 without
}

// AttendSize is the size of an Attend.
type AttendSize struct {
	Heads, KVHeads int
	Head           int // values of a head
	Capacity       int // of the cache
}

// ExpertsSize is the size of an Experts.
type ExpertsSize struct {
	Used, Experts int // experts of a column, and all
	In, Out       int // values of a column before and after
	Inner         int // rows of one expert's gate
}
