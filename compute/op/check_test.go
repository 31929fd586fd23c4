package op_test

import (
	"errors"
	"testing"

	"pooled/compute/op"
)

func TestPortsOfWidePrograms(t *testing.T) {
	ids := make([]int32, 512)
	wide := op.Ports{Cols: 512, Table: 10, Hidden: 4, Logits: 10, Tail: true, Capacity: 1000}
	narrow := wide
	narrow.Cols = op.MaxCols
	frame := func(n, head int) op.Frame { return op.Frame{N: n, HeadFrom: head, Tokens: ids[:n]} }
	undo := frame(16, 15)
	undo.Spec = true
	for _, c := range []struct {
		what string
		p    op.Ports
		f    op.Frame
		ok   bool
	}{
		{"a full wide run", wide, frame(512, 511), true},
		{"no head column", wide, frame(512, 512), true},
		{"sixteen head columns", wide, frame(512, 496), true},
		{"seventeen head columns", wide, frame(512, 495), false},
		{"a wide run to be undone", wide, undo, false},
		{"a narrow run to be undone", narrow, undo, true},
		{"seventeen columns of a narrow program", narrow, frame(17, 16), false},
		{"none", wide, frame(0, 0), false},
	} {
		if err := c.p.Check(c.f, nil, nil); (err == nil) != c.ok || err != nil && !errors.Is(err, op.ErrArgument) {
			t.Errorf("%s: %v", c.what, err)
		}
	}
}

func TestCheckCols(t *testing.T) {
	for cols, ok := range map[int]bool{0: false, 1: false, 15: false, 16: true, 24: false, 32: true, 512: true, 528: false, -16: false} {
		if err := op.CheckCols(cols); (err == nil) != ok {
			t.Errorf("%d columns: %v", cols, err)
		}
	}
}
