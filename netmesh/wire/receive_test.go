package wire

import (
	"bytes"
	"slices"
	"testing"
	"time"
)

func TestReceiverGaps(t *testing.T) {
	const ms = time.Millisecond
	tests := []struct {
		name string
		run  func(b *bench)
		want []int
		skip uint64
	}{
		{"slices of two frames interleaved over two channels", func(b *bench) {
			b.rx(0, 1, 0, 5000)
			b.rx(1, 2, 1, 5000)
			b.rx(1, 2, 0, 5000)
			b.rx(1, 1, 1, 5000)
		}, []int{1, 2}, 0},
		{"a frame that lacks a slice is lost with its channel", func(b *bench) {
			b.rx(0, 1, 0, 5000)
			b.rx(1, 2, 0, 4)
			b.took(b.r.Closed(b.now, 0))
		}, []int{2}, 1},
		{"the first slice of a later frame proves what is lost before it", func(b *bench) {
			b.rx(1, 3, 0, 4)
			b.rx(0, 4, 0, 5000)
		}, []int{3}, 2},
		{"every channel gone: no proof, 5 s", func(b *bench) {
			b.rx(0, 2, 0, 4)
			b.took(b.r.Closed(b.now, 0))
			b.took(b.r.Closed(b.now, 1))
			b.wait(4999 * ms)
			if len(b.delivered) == 0 {
				b.wait(ms)
			}
		}, []int{2}, 1},
		{"a close that is old does not shorten the wait", func(b *bench) {
			b.took(b.r.Closed(b.now, 1))
			b.r.Opened(2, true)
			b.wait(15000 * ms)
			b.rx(0, 2, 0, 4)
			b.wait(59999 * ms)
		}, nil, 0},
		{"a close within 15 s does", func(b *bench) {
			b.took(b.r.Closed(b.now, 1))
			b.r.Opened(2, true)
			b.wait(14999 * ms)
			b.rx(0, 2, 0, 4)
			b.wait(5000 * ms)
		}, []int{2}, 1},
		{"a close with nothing waiting starts no timer", func(b *bench) {
			b.took(b.r.Closed(b.now, 1))
			b.rx(0, 1, 0, 4)
		}, []int{1}, 0},
		{"a channel opened later holds the proof back", func(b *bench) {
			b.took(b.r.Closed(b.now, 1))
			b.r.Opened(3, true)
			b.rx(0, 2, 0, 4)
			b.wait(4999 * ms)
		}, nil, 0},
		{"an unordered channel is remembered after it closed", func(b *bench) {
			b.r.Opened(2, false)
			b.took(b.r.Closed(b.now, 2))
			b.took(b.r.Closed(b.now, 1))
			b.rx(0, 2, 0, 4)
			b.wait(4999 * ms)
		}, nil, 0},
		{"slices on a channel not noted as open prove nothing", func(b *bench) {
			b.rx(7, 2, 0, 4)
			b.wait(59999 * ms)
			b.rx(0, 1, 0, 4)
		}, []int{1, 2}, 0},
		{"a jump over four billion ids", func(b *bench) {
			b.took(b.r.Closed(b.now, 1))
			b.rx(0, 1<<32-1, 0, 4)
			b.rx(0, 1<<32-1, 0, 4)
			b.rx(0, 5, 0, 4)
		}, []int{1<<32 - 1}, 1<<32 - 2},
		{"woken too early", func(b *bench) {
			b.rx(0, 2, 0, 4)
			b.took(b.r.Wake(b.now.Add(59999 * ms)))
		}, nil, 0},
		{"woken without a reason", func(b *bench) {
			b.took(b.r.Wake(b.now.Add(time.Hour)))
			b.rx(0, 1, 0, 4)
		}, []int{1}, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(Limits{})
			b.r.Opened(0, true)
			b.r.Opened(1, true)
			tt.run(b)
			if !slices.Equal(b.delivered, tt.want) {
				t.Errorf("delivered %v, want %v", b.delivered, tt.want)
			}
			if got := b.r.Stats().Skipped; got != tt.skip {
				t.Errorf("skipped %d, want %d", got, tt.skip)
			}
			if len(b.r.done) == 0 && !b.wake.IsZero() {
				t.Errorf("a timer runs for nothing")
			}
			checkHeld(t, b.r)
		})
	}
}

// checkHeld compares what the receiver believes to hold with what it does.
func checkHeld(t *testing.T, r *Receiver) {
	t.Helper()
	held := 0
	for _, f := range r.done {
		held += len(f.Data)
	}
	for id, g := range r.partial {
		held += len(g.frame.Data)
		if id < r.next {
			t.Errorf("frame %d is kept, next is %d", id, r.next)
		}
	}
	if held != r.held {
		t.Errorf("holds %d bytes, believes %d", held, r.held)
	}
}

func TestReceiverIgnores(t *testing.T) {
	good := func(f Frame, id uint32, k int) []byte {
		b := make([]byte, SliceBytes)
		return b[:f.PutSlice(b, id, k)]
	}
	two := Frame{Data: make([]byte, 5000)}
	change := func(b []byte, at int, with ...byte) []byte {
		copy(b[at:], with)
		return b
	}
	tests := []struct {
		name string
		in   []byte
	}{
		{"one slice that claims a larger frame", change(good(Frame{Data: make([]byte, 4)}, 1, 0), 20, 0, 0, 0x20, 0)},
		{"more slices than the size takes", change(good(two, 1, 0), 16, 0, 3)},
		{"frame over the limit", good(Frame{Data: make([]byte, 9000)}, 1, 0)},
		{"frame of 4 GiB", change(good(two, 1, 0), 16, 0xff, 0xff, 0, 0, 0xff, 0xff, 0xff, 0xff)},
		{"last slice one byte short", good(two, 1, 1)[:HeaderBytes+431]},
		{"first slice one byte short", good(two, 1, 0)[:SliceBytes-1]},
		{"slice behind the last of a full one", change(good(Frame{Data: make([]byte, PayloadBytes)}, 1, 0), 14, 0, 1)[:HeaderBytes]},
		{"empty", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := NewReceiver(Limits{FrameBytes: 8192})
			r.Opened(0, true)
			if out, _ := r.Slice(time.Unix(0, 0), 0, tt.in); len(out) > 0 || len(r.partial) > 0 || r.held > 0 {
				t.Errorf("got %v, holds %d", out, r.held)
			}
			if r.Stats().Ignored != 1 {
				t.Errorf("got %+v, want 1 ignored", r.Stats())
			}
		})
	}
	t.Run("size or count other than the first slice's", func(t *testing.T) {
		b := newBench(Limits{})
		b.rx(0, 1, 0, 5000)
		b.rx(0, 1, 1, 5001)
		b.rx(0, 1, 1, 10000)
		if len(b.delivered) > 0 || b.r.Stats().Ignored != 2 {
			t.Errorf("got %v, %+v", b.delivered, b.r.Stats())
		}
		b.rx(0, 1, 1, 5000)
		if !slices.Equal(b.delivered, []int{1}) {
			t.Errorf("got %v after the right slice", b.delivered)
		}
	})
	t.Run("the same slice twice does not complete a frame", func(t *testing.T) {
		b := newBench(Limits{})
		b.rx(0, 1, 0, 5000)
		b.rx(1, 1, 0, 5000)
		if len(b.delivered) > 0 || b.r.Stats().Ignored != 0 {
			t.Errorf("got %v, %+v", b.delivered, b.r.Stats())
		}
	})
}

func TestReceiverLimits(t *testing.T) {
	t.Run("number of frames", func(t *testing.T) {
		b := newBench(Limits{Frames: 10})
		for id := range uint32(100) {
			b.rx(0, id+2, 0, 5000)
		}
		if len(b.r.partial) != 10 {
			t.Errorf("%d frames begun, want 10", len(b.r.partial))
		}
		b.rx(0, 1, 0, 5000)
		b.rx(0, 1, 1, 5000)
		b.rx(0, 2, 1, 5000)
		if !slices.Equal(b.delivered, []int{1, 2}) {
			t.Errorf("got %v, want the frames everything waits for", b.delivered)
		}
		checkHeld(t, b.r)
	})
	t.Run("bytes of frames", func(t *testing.T) {
		b := newBench(Limits{Bytes: 50000})
		for id := range uint32(100) {
			b.rx(0, id+2, 0, 4000)
		}
		if b.r.held != 48000 {
			t.Errorf("%d bytes held, want 48000", b.r.held)
		}
		b.rx(0, 1, 0, 4000)
		if len(b.delivered) != 13 || b.r.held != 0 {
			t.Errorf("delivered %v, %d held", b.delivered, b.r.held)
		}
	})
	t.Run("old ones make room", func(t *testing.T) {
		b := newBench(Limits{Frames: 2})
		b.rx(0, 2, 0, 5000)
		b.wait(10 * time.Second)
		b.rx(0, 3, 0, 5000)
		b.wait(20*time.Second + 1)
		b.rx(0, 4, 0, 5000)
		if b.r.partial[2] != nil || b.r.partial[3] == nil || b.r.partial[4] == nil {
			t.Errorf("kept %v", b.r.partial)
		}
	})
	t.Run("more than 64 begun and older than 30 s", func(t *testing.T) {
		for _, n := range []uint32{64, 65} {
			b := newBench(Limits{})
			for id := range n {
				b.rx(0, id+10, 0, 5000)
			}
			b.wait(30*time.Second + 1)
			b.rx(0, 1, 0, 4)
			if got, want := len(b.r.partial), map[uint32]int{64: 64, 65: 0}[n]; got != want {
				t.Errorf("of %d begun %d are kept, want %d", n, got, want)
			}
		}
	})
	t.Run("the deal changes the size allowed", func(t *testing.T) {
		b := newBench(Limits{FrameBytes: 100})
		b.rx(0, 1, 0, 101)
		b.r.SetFrameBytes(101)
		b.rx(0, 1, 0, 101)
		if !slices.Equal(b.delivered, []int{1}) || b.r.Stats().Ignored != 1 {
			t.Errorf("got %v, %+v", b.delivered, b.r.Stats())
		}
	})
}

func TestReceiverUnknownKind(t *testing.T) {
	r := NewReceiver(Limits{})
	r.Opened(0, true)
	b := make([]byte, SliceBytes)
	odd, plain := Frame{Kind: 9}, Frame{Pos: 7}
	if out, wake := r.Slice(time.Unix(0, 0), 0, b[:odd.PutSlice(b, 1, 0)]); len(out) > 0 || !wake.IsZero() {
		t.Errorf("got %v, %v", out, wake)
	}
	if out, _ := r.Slice(time.Unix(0, 0), 0, b[:plain.PutSlice(b, 2, 0)]); len(out) != 1 || out[0].Pos != 7 {
		t.Errorf("got %v after it", out)
	}
	if st := r.Stats(); st.Frames != 1 || st.Skipped != 0 {
		t.Errorf("got %+v", st)
	}
}

func TestReceiverKeepsNothingOfTheInput(t *testing.T) {
	r := NewReceiver(Limits{})
	f := Frame{Drop: []uint16{3, 4}, Data: bytes.Repeat([]byte{1, 2}, 3000)}
	b := make([]byte, SliceBytes)
	now := time.Unix(0, 0)
	r.Slice(now, 0, b[:f.PutSlice(b, 1, 0)])
	clear(b)
	out, _ := r.Slice(now, 0, b[:f.PutSlice(b, 1, 1)])
	clear(b)
	if len(out) != 1 || !bytes.Equal(out[0].Data, f.Data) || !slices.Equal(out[0].Drop, f.Drop) {
		t.Errorf("the frame changed with the buffer")
	}
}

func FuzzReceiver(f *testing.F) {
	b := make([]byte, SliceBytes)
	add := func(fr Frame, id uint32, k int) []byte {
		n := fr.PutSlice(b, id, k)
		return append([]byte{byte(min(n, 255)), 2}, b[:n]...)
	}
	one, two := Frame{Pos: 3, Data: []byte{1, 2}}, Frame{Kind: HiddenB, Data: make([]byte, 4570)}
	f.Add(slices.Concat(add(one, 1, 0), add(one, 3, 0), []byte{0, 61}, add(one, 2, 0)), uint8(0))
	f.Add(slices.Concat(add(two, 2, 1), add(two, 2, 0), []byte{0, 0, 0, 9}, add(one, 1, 0)), uint8(0))
	f.Add(slices.Concat(add(two, 1, 0), add(two, 1, 1), add(one, 9, 0)), uint8(1))
	f.Fuzz(func(t *testing.T, in []byte, how uint8) {
		lim := Limits{FrameBytes: 1 << 16, Frames: 8, Bytes: 1 << 18}
		r := NewReceiver(lim)
		r.Opened(0, true)
		r.Opened(1, how&1 == 0)
		now := time.Unix(0, 0)
		seen := uint64(0)
		// The input is a list of slices, each with its length in front, with closes and waits between.
		for len(in) > 1 {
			n, op := int(in[0]), in[1]
			in = in[2:]
			if n == 255 {
				n = SliceBytes
			}
			n = min(n, len(in))
			var out []Frame
			switch op % 8 {
			case 0:
				out, _ = r.Closed(now, int(op)>>3&1)
			case 1:
				now = now.Add(time.Duration(op) * time.Second)
				out, _ = r.Wake(now)
			default:
				out, _ = r.Slice(now, int(op)>>3&1, in[:n])
			}
			in = in[n:]
			seen += uint64(len(out))
			if r.held > lim.Bytes+lim.FrameBytes || len(r.done)+len(r.partial) > lim.Frames+1 {
				t.Fatalf("holds %d bytes, %d and %d frames", r.held, len(r.done), len(r.partial))
			}
			if (len(r.done) > 0) != !r.gapAt.IsZero() {
				t.Fatalf("%d frames wait, timer %v", len(r.done), r.gapAt)
			}
		}
		if st := r.Stats(); st.Frames != seen || st.Frames+st.Skipped > r.next {
			t.Fatalf("%d frames seen, %+v, next %d", seen, st, r.next)
		}
		checkHeld(t, r)
	})
}
