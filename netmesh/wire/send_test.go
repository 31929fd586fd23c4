package wire

import (
	"errors"
	"math"
	"reflect"
	"slices"
	"testing"
	"time"
)

func TestFrameCheck(t *testing.T) {
	tests := []struct {
		name string
		f    Frame
		ok   bool
	}{
		{"zero", Frame{}, true},
		{"everything at its most", Frame{Kind: HiddenRetB, Pos: math.MaxUint32, N: 65535, Spec: true, Reset: true, Rollback: 63,
			Save: 65535, Load: 65535, Drop: []uint16{65534, 1}}, true},
		{"drop all among others", Frame{Drop: []uint16{1, 2, DropAll}}, true},
		{"largest", Frame{Data: make([]byte, MaxFrameBytes)}, true},
		{"too large", Frame{Data: make([]byte, MaxFrameBytes+1)}, false},
		{"kind", Frame{Kind: 4}, false},
		{"columns", Frame{N: 65536}, false},
		{"negative columns", Frame{N: -1}, false},
		{"rollback", Frame{Rollback: 64}, false},
		{"negative rollback", Frame{Rollback: -1}, false},
		{"three drops", Frame{Drop: []uint16{1, 2, 3}}, false},
		{"drop of no slot", Frame{Drop: []uint16{1, 0}}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if err := tt.f.Check(); (err == nil) != tt.ok || err != nil && !errors.Is(err, ErrFrame) {
				t.Errorf("got %v, want ok %v", err, tt.ok)
			}
		})
	}
}

func TestDropAllIsSentAlone(t *testing.T) {
	f := Frame{Drop: []uint16{1, 2, DropAll}}
	b := make([]byte, SliceBytes)
	s, ok := parseSlice(b[:f.PutSlice(b, 1, 0)])
	if got := s.frame().Drop; !ok || !slices.Equal(got, []uint16{DropAll}) {
		t.Errorf("got %v", got)
	}
}

func TestSenderFailures(t *testing.T) {
	f := &Frame{Data: make([]byte, 5000)}
	tests := []struct {
		name  string
		ch    fakeChannels
		sends [][3]int
		lost  int
		err   error
		last  uint32
	}{
		{"no channel at all", fakeChannels{}, nil, 0, ErrNoChannel, 0},
		{"none open", fakeChannels{buffered: []int{-1, -1}}, nil, 0, ErrNoChannel, 0},
		{"one fails: its slices go elsewhere", fakeChannels{buffered: []int{0, 0, 0}, broken: map[int]bool{1: true}},
			[][3]int{{0, 1, 0}, {0, 1, 0}, {2, 1, 1}, {0, 1, 1}}, 0, nil, 1},
		{"the only open one fails: lost, and the id is used", fakeChannels{buffered: []int{0, -1}, broken: map[int]bool{0: true}},
			nil, 2, nil, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := NewSender(DefaultCopyLimit)
			lost, err := s.Send(f, &tt.ch)
			if lost != tt.lost || !errors.Is(err, tt.err) || s.last != tt.last {
				t.Errorf("got %d lost, %v, id %d, want %d, %v, %d", lost, err, s.last, tt.lost, tt.err, tt.last)
			}
			if !slices.Equal(tt.ch.sends, tt.sends) {
				t.Errorf("sent %v, want %v", tt.ch.sends, tt.sends)
			}
		})
	}
	t.Run("ids used up", func(t *testing.T) {
		s := NewSender(0)
		s.last = math.MaxUint32
		if _, err := s.Send(f, &fakeChannels{buffered: []int{0}}); !errors.Is(err, ErrIDs) {
			t.Errorf("got %v, want ErrIDs", err)
		}
	})
	t.Run("bad frame uses no id", func(t *testing.T) {
		s := NewSender(0)
		if _, err := s.Send(&Frame{Kind: 9}, &fakeChannels{buffered: []int{0}}); !errors.Is(err, ErrFrame) || s.last != 0 {
			t.Errorf("got %v, id %d", err, s.last)
		}
	})
}

func TestLeastQueued(t *testing.T) {
	tests := []struct {
		name   string
		queued []int
		turn   uint64
		avoid  int
		want   int
	}{
		{"first of equals from the turn on", []int{0, 0, 0}, 4, -1, 1},
		{"least wins over the turn", []int{9, 8, 7}, 0, -1, 2},
		{"avoided", []int{1, 2}, 0, 0, 1},
		{"closed meanwhile", []int{-1, 2}, 0, -1, 1},
		{"nothing left", []int{1}, 0, 0, -1},
		{"none", nil, 3, -1, -1},
		{"turn past 2^63", []int{0, 0, 0}, math.MaxUint64, -1, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := leastQueued(tt.queued, tt.turn, tt.avoid); got != tt.want {
				t.Errorf("got %d, want %d", got, tt.want)
			}
		})
	}
}

type nullChannels struct{ n int }

func (c *nullChannels) Len() int               { return c.n }
func (c *nullChannels) Buffered(int) int       { return 0 }
func (c *nullChannels) Send(int, []byte) error { return nil }

func TestSendDoesNotAllocate(t *testing.T) {
	s := NewSender(DefaultCopyLimit)
	ch := &nullChannels{n: 4}
	f := &Frame{Drop: []uint16{1, 2}, Data: make([]byte, 10240)}
	if _, err := s.Send(f, ch); err != nil {
		t.Fatal(err)
	}
	if got := testing.AllocsPerRun(100, func() { _, _ = s.Send(f, ch) }); got != 0 {
		t.Errorf("%v allocations a frame, want 0", got)
	}
}

func TestMessages(t *testing.T) {
	data := []byte{1, 2}
	tests := []struct {
		name string
		f    Frame
		want map[string]any
	}{
		{"plain", Frame{Pos: 17, N: 1, Data: data}, map[string]any{"t": "ai-hidden", "pos": uint32(17), "data": data, "enc": "f16"}},
		{"everything", Frame{Kind: HiddenB, Pos: 5, N: 3, Spec: true, Reset: true, Rollback: 1, Save: 7, Load: 8, Drop: []uint16{1, 2}, Data: data},
			map[string]any{"t": "ai-hidden-b", "basePos": uint32(5), "n": 3, "spec": 1, "reset": 1, "rb": 0, "sv": uint16(7),
				"ld": uint16(8), "dp": []any{uint16(1), uint16(2)}, "data": data, "enc": "f16"}},
		{"drop all", Frame{Kind: HiddenRetB, N: 1, Drop: []uint16{DropAll}, Data: data},
			map[string]any{"t": "ai-hiddenret-b", "basePos": uint32(0), "n": 1, "dp": []any{uint16(DropAll)}, "data": data, "enc": "f16"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := tt.f.Message()
			if err != nil || !reflect.DeepEqual(got, tt.want) {
				t.Fatalf("got %v, %v, want %v", got, err, tt.want)
			}
			if back, err := FromMessage(got); err != nil || !reflect.DeepEqual(back, tt.f) {
				t.Errorf("read back %+v, %v, want %+v", back, err, tt.f)
			}
		})
	}
	if _, err := (&Frame{Kind: 7}).Message(); !errors.Is(err, ErrFrame) {
		t.Errorf("unknown kind: got %v, want ErrFrame", err)
	}
	if !IsMessage("ai-hiddenret") || IsMessage("ai-token") || IsMessage("") {
		t.Error("IsMessage is wrong")
	}
}

func TestFromMessage(t *testing.T) {
	base := func(change ...any) map[string]any {
		m := map[string]any{"t": "ai-hidden", "pos": int64(4), "data": []byte{1, 2}, "enc": "f16"}
		for i := 0; i < len(change); i += 2 {
			m[change[i].(string)] = change[i+1]
		}
		return m
	}
	want := Frame{Pos: 4, N: 1, Data: []byte{1, 2}}
	tests := []struct {
		name string
		m    map[string]any
		want func(f *Frame)
	}{
		{"plain", base(), func(*Frame) {}},
		{"null fields are absent", base("n", nil, "rb", nil, "dp", nil, "spec", nil), func(*Frame) {}},
		{"booleans and zeros", base("spec", true, "reset", int64(0)), func(f *Frame) { f.Spec = true }},
		{"one drop without a list", base("dp", int64(9)), func(f *Frame) { f.Drop = []uint16{9} }},
		{"empty list of drops", base("dp", []any{}), func(*Frame) {}},
		{"many drops with drop all", base("dp", []any{int64(1), int64(2), int64(3), int64(DropAll)}), func(f *Frame) { f.Drop = []uint16{DropAll} }},
		{"unknown t", base("t", "ai-token"), nil},
		{"t of another type", base("t", int64(1)), nil},
		{"position beyond 32 bits", base("pos", int64(1<<32)), nil},
		{"negative position", base("pos", int64(-1)), nil},
		{"half a position", base("pos", 0.5), nil},
		{"position as text", base("pos", "4"), nil},
		{"columns", base("n", int64(65536)), nil},
		{"no encoding: float32 of an old peer", base("enc", nil), nil},
		{"data as text", base("data", "AAA="), nil},
		{"no data", base("data", nil), nil},
		{"drop of no number", base("dp", []any{"x"}), nil},
		{"flag of no number", base("spec", "yes"), nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := FromMessage(tt.m)
			if tt.want == nil {
				if !errors.Is(err, ErrMessage) {
					t.Errorf("got %+v, %v, want ErrMessage", got, err)
				}
				return
			}
			w := want
			tt.want(&w)
			if err != nil || !reflect.DeepEqual(got, w) {
				t.Errorf("got %+v, %v, want %+v", got, err, w)
			}
		})
	}
}

func FuzzRoundTrip(f *testing.F) {
	f.Add(uint8(0), uint32(1), uint32(9), uint16(1), uint8(0), uint16(0), uint16(0), uint16(0), uint16(0), []byte{1, 2})
	f.Add(uint8(3), uint32(7), uint32(1<<31), uint16(16), uint8(255), uint16(1), uint16(2), uint16(DropAll), uint16(5), make([]byte, 9137))
	f.Fuzz(func(t *testing.T, kind uint8, id, pos uint32, n uint16, flags uint8, save, load, d0, d1 uint16, data []byte) {
		want := Frame{Kind: Kind(kind & 3), Pos: pos, N: max(1, int(n)), Save: save, Load: load, Data: append([]byte{}, data...)}
		want.setFlags(flags)
		want.setDrops(d0, d1)
		if err := want.Check(); err != nil {
			t.Fatal(err)
		}
		id = max(1, id)
		r := NewReceiver(Limits{})
		r.next = uint64(id)
		b := make([]byte, SliceBytes)
		var got []Frame
		for k := want.Slices() - 1; k >= 0; k-- {
			size := want.PutSlice(b, id, k)
			out, _ := r.Slice(time.Unix(0, 0), 0, b[:size])
			got = append(got, out...)
		}
		if len(got) != 1 || !reflect.DeepEqual(got[0], want) {
			t.Fatalf("got %+v, want %+v", got, want)
		}
	})
}
