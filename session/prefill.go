package session

// prefillCols is how many columns one pass of the engine takes (op.MaxCols).
const prefillCols = 16

// soloCols is how many tokens of a prompt a host that holds all layers gives its engine at once. The engine cuts them as suits the
// device; between two calls progress is reported.
const soloCols = 256

// maxInFlight is how many frames of a prompt are on the way at once (spec room.md 5.4).
const maxInFlight = 6

// cut is one frame of a prompt: new tokens at..at+n-1.
type cut struct {
	at, n int
	kind  cutKind
	head  bool // its last column goes to the head
}

// cutKind says how a frame travels.
type cutKind uint8

const (
	cutToken cutKind = iota // one hidden state, an ordinary lap
	cutBatch
	cutTail // the rest, last token included, as one batch
	cutWide // for devices with prefill kernels
)

// prefill says how a host cuts prompts for its chain (spec room.md 5.4).
type prefill struct {
	cols int  // columns of one pass
	flex bool // the model drafts and has a batched pass: the tail goes as one frame
	wide int  // columns of a wide frame, 0 for none
}

// cuts returns the frames of n new tokens.
func (p prefill) cuts(n int) []cut {
	var cs []cut
	at := 0
	frame := func(k int, kind cutKind) {
		cs = append(cs, cut{at: at, n: k, kind: kind})
		at += k
	}
	if p.wide > 0 {
		for n-at-1 >= 2*p.cols {
			frame(min(p.wide, n-at-1), cutWide)
		}
	}
	if p.flex || n-at > 5 {
		for _, w := range []int{p.cols, 8, 4} {
			if w > p.cols {
				continue
			}
			for n-at-1 >= w {
				frame(w*max(1, min(16/w, (n-at-1)/w)), cutBatch)
			}
		}
	}
	if p.flex {
		if n > at {
			frame(n-at, cutTail)
			cs[len(cs)-1].head = true
		}
		return cs
	}
	for at < n {
		frame(1, cutToken)
	}
	if len(cs) > 0 {
		cs[len(cs)-1].head = true
	}
	return cs
}
