package pack

import (
	"bytes"
	"testing"
)

func TestChunksLimits(t *testing.T) {
	long := make([]byte, MaxMessage)
	tests := []struct {
		name   string
		id     int
		packed []byte
		want   int
	}{
		{"short message, no id needed", 0, long[:ChunkBytes], 1},
		{"empty", 1, nil, 1},
		{"longest", 1, long, MaxPieces},
		{"too long", 1, make([]byte, MaxMessage+1), 0},
		{"id 0", 0, long[:ChunkBytes+1], 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := len(Chunks(tt.id, tt.packed)); got != tt.want {
				t.Errorf("got %d messages, want %d", got, tt.want)
			}
		})
	}
}

func piece(id, n, total any, data any) map[string]any {
	return map[string]any{"__peerData": id, "n": n, "total": total, "data": data}
}

func TestJoiner(t *testing.T) {
	a, b, c := []byte("a"), []byte("b"), []byte("c")
	i := func(n int) any { return int64(n) }
	type step struct {
		v     any
		whole string // "" for none
		piece bool
	}
	tests := []struct {
		name  string
		steps []step
	}{
		{"in order", []step{{piece(i(1), i(0), i(2), a), "", true}, {piece(i(1), i(1), i(2), b), "ab", true}}},
		{"out of order", []step{{piece(i(1), i(1), i(2), b), "", true}, {piece(i(1), i(0), i(2), a), "ab", true}}},
		{"two interleaved", []step{
			{piece(i(1), i(0), i(2), a), "", true}, {piece(i(2), i(0), i(2), b), "", true},
			{piece(i(1), i(1), i(2), b), "ab", true}, {piece(i(2), i(1), i(2), c), "bc", true}}},
		{"a repeated piece counts: the message is what came", []step{
			{piece(i(1), i(0), i(3), a), "", true}, {piece(i(1), i(1), i(3), b), "", true},
			{piece(i(1), i(1), i(3), c), "ac", true}, {piece(i(1), i(2), i(3), c), "", true}}},
		{"a repeated piece counts: a hole loses the message", []step{
			{piece(i(1), i(0), i(3), a), "", true}, {piece(i(1), i(0), i(3), a), "", true},
			{piece(i(1), i(2), i(3), c), "", true}, {piece(i(1), i(0), i(1), b), "b", true}}},
		{"integers sent as floats", []step{{piece(1.0, 0.0, 1.0, a), "a", true}}},
		{"ordinary message", []step{{map[string]any{"t": "x"}, "", false}, {"text", "", false}, {nil, "", false}}},
		{"id 0 is no piece", []step{{piece(i(0), i(0), i(1), a), "", false}, {piece(nil, i(0), i(1), a), "", false}}},
		{"dropped: outside the limits", []step{
			{piece(i(1), i(0), i(0), a), "", true}, {piece(i(1), i(0), i(257), a), "", true},
			{piece(i(1), i(-1), i(1), a), "", true}, {piece(i(1), i(1), i(1), a), "", true},
			{piece(i(1), 0.5, i(1), a), "", true}, {piece("x", i(0), i(1), a), "", true},
			{piece(i(1), i(0), "1", a), "", true}, {piece(i(1), i(0), i(1), "text"), "", true},
			{piece(i(1), i(0), i(1), make([]byte, ChunkBytes+1)), "", true},
			{piece(i(1), i(0), i(1), a), "a", true}}},
		{"dropped: another total", []step{
			{piece(i(1), i(0), i(2), a), "", true}, {piece(i(1), i(1), i(3), b), "", true},
			{piece(i(1), i(1), i(2), b), "ab", true}}},
		{"close request", []step{{map[string]any{"__peerData": map[string]any{"type": "close"}}, "", true}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var j Joiner
			for n, s := range tt.steps {
				whole, isPiece := j.Add(s.v)
				if string(whole) != s.whole || isPiece != s.piece {
					t.Errorf("step %d: got %q, %v, want %q, %v", n, whole, isPiece, s.whole, s.piece)
				}
			}
		})
	}
}

func TestJoinerHoldsEightMessages(t *testing.T) {
	var j Joiner
	for id := range int64(20) {
		if whole, ok := j.Add(piece(id+1, int64(0), int64(2), []byte("x"))); whole != nil || !ok {
			t.Fatalf("message %d: got %q, %v", id+1, whole, ok)
		}
	}
	if got := len(j.partial); got != MaxPartial {
		t.Errorf("%d messages in the making, want %d", got, MaxPartial)
	}
	for id := range int64(20) {
		whole, _ := j.Add(piece(id+1, int64(1), int64(2), []byte("y")))
		if want := id < MaxPartial; (whole != nil) != want {
			t.Errorf("message %d: got %q, want one: %v", id+1, whole, want)
		}
	}
}

func TestIsClose(t *testing.T) {
	tests := []struct {
		name string
		v    any
		want bool
	}{
		{"close", map[string]any{"__peerData": map[string]any{"type": "close"}}, true},
		{"other type", map[string]any{"__peerData": map[string]any{"type": "x"}}, false},
		{"piece", piece(int64(1), int64(0), int64(1), []byte{}), false},
		{"message", map[string]any{"t": "close"}, false},
		{"not a map", []any{}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := IsClose(tt.v); got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

func FuzzUnmarshal(f *testing.F) {
	for _, s := range []string{"\x00", "\x81\xb1t\xb1x", "\xdd\xff\xff\xff\xff", "\x91\x91\x91", "\xcb\x7f\xf8\x00\x00\x00\x00\x00\x00"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		v, err := Unmarshal(b, Limits{})
		if err != nil {
			return
		}
		again, err := Marshal(v)
		if err != nil {
			return // integers below -2^31 are read but not sent
		}
		back, err := Unmarshal(again, Limits{})
		if err != nil {
			t.Fatalf("%x decoded, its own encoding %x did not: %v", b, again, err)
		}
		third, err := Marshal(back)
		if err != nil || !bytes.Equal(again, third) {
			t.Fatalf("%x: encoded as %x, then as %x, %v", b, again, third, err)
		}
	})
}

func FuzzJoiner(f *testing.F) {
	for n := range 2 {
		b, err := Marshal(Map{{"__peerData", 1}, {"n", n}, {"data", []byte("pooled")}, {"total", 2}})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, b)
	}
	f.Fuzz(func(t *testing.T, a, b []byte) {
		var j Joiner
		held := 0
		for _, in := range [][]byte{a, b, a, b} {
			v, err := Unmarshal(in, Limits{})
			if err != nil {
				continue
			}
			held += len(in)
			if whole, isPiece := j.Add(v); len(whole) > held || whole != nil && !isPiece {
				t.Fatalf("%d bytes rebuilt from %d", len(whole), held)
			}
		}
		if len(j.partial) > MaxPartial {
			t.Fatalf("%d messages in the making", len(j.partial))
		}
	})
}
