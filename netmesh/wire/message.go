package wire

import (
	"fmt"
	"math"
)

// kindNames are the names of the kinds as messages (spec wire.md 4.3).
var kindNames = [...]string{Hidden: "ai-hidden", HiddenB: "ai-hidden-b", HiddenRet: "ai-hiddenret", HiddenRetB: "ai-hiddenret-b"}

// String returns the name of the kind as a message.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// Batch reports whether frames of the kind carry several columns.
func (k Kind) Batch() bool { return k == HiddenB || k == HiddenRetB }

// Message returns the frame as the ordinary message that replaces it while no wire channel is open (spec wire.md 4.4).
// It refers to the frame's data.
func (f *Frame) Message() (map[string]any, error) {
	if err := f.Check(); err != nil {
		return nil, err
	}
	m := map[string]any{"t": f.Kind.String(), "data": f.Data, "enc": "f16"}
	if f.Data == nil {
		m["data"] = []byte{}
	}
	if f.Kind.Batch() {
		m["basePos"], m["n"] = f.Pos, max(1, f.N)
	} else {
		m["pos"] = f.Pos
	}
	if f.Spec {
		m["spec"] = 1
	}
	if f.Reset {
		m["reset"] = 1
	}
	if f.Rollback > 0 {
		m["rb"] = f.Rollback - 1
	}
	if f.Save > 0 {
		m["sv"] = f.Save
	}
	if f.Load > 0 {
		m["ld"] = f.Load
	}
	if d0, d1 := f.drops(); d1 > 0 {
		m["dp"] = []any{d0, d1}
	} else if d0 > 0 {
		m["dp"] = []any{d0}
	}
	return m, nil
}

// IsMessage reports whether a message with this "t" is a frame.
func IsMessage(t string) bool {
	for _, name := range kindNames {
		if t == name {
			return true
		}
	}
	return false
}

// FromMessage reads a frame that came as a message. The data must be float16 bytes (enc "f16"): what peers older than
// protocol 4 sent is refused. The frame refers to the message's data.
func FromMessage(m map[string]any) (Frame, error) {
	r := messageReader{m: m}
	f := Frame{Kind: r.kind()}
	pos := "pos"
	if f.Kind.Batch() {
		pos = "basePos"
	}
	f.Pos = uint32(r.int(pos, 0, math.MaxUint32, 0))
	f.N = max(1, int(r.int("n", 0, 0xffff, 1)))
	f.Spec, f.Reset = r.flag("spec"), r.flag("reset")
	f.Rollback = int(r.int("rb", 0, maxColumn, -1)) + 1
	f.Save = uint16(r.int("sv", 1, 0xffff, 0))
	f.Load = uint16(r.int("ld", 1, 0xffff, 0))
	f.Drop = r.drops()
	f.Data = r.data()
	if r.err != nil {
		return Frame{}, r.err
	}
	if err := f.Check(); err != nil {
		return Frame{}, fmt.Errorf("%w: %w", ErrMessage, err)
	}
	return f, nil
}

// messageReader reads fields and remembers the first that is wrong. A nil field counts as absent.
type messageReader struct {
	m   map[string]any
	err error
}

func (r *messageReader) fail(field string, v any) {
	if r.err == nil {
		r.err = fmt.Errorf("%w: %s is %.40q", ErrMessage, field, fmt.Sprint(v))
	}
}

func (r *messageReader) kind() Kind {
	t, _ := r.m["t"].(string)
	for k, name := range kindNames {
		if t == name {
			return Kind(k)
		}
	}
	r.fail("t", r.m["t"])
	return 0
}

func (r *messageReader) int(field string, lo, hi, absent int64) int64 {
	v := r.m[field]
	if v == nil {
		return absent
	}
	n, ok := number(v)
	if !ok || n < lo || n > hi {
		r.fail(field, v)
		return absent
	}
	return n
}

func (r *messageReader) flag(field string) bool {
	if b, ok := r.m[field].(bool); ok {
		return b
	}
	return r.int(field, math.MinInt64, math.MaxInt64, 0) != 0
}

// drops reads dp: one slot, or a list. A list with DropAll may be of any length and means that alone.
func (r *messageReader) drops() []uint16 {
	v := r.m["dp"]
	if v == nil {
		return nil
	}
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	var out []uint16
	all := false
	for _, e := range list {
		n, ok := number(e)
		if !ok || n < 1 || n > DropAll {
			r.fail("dp", e)
			return nil
		}
		all = all || n == DropAll
		if len(out) < 3 {
			out = append(out, uint16(n))
		}
	}
	if all {
		return []uint16{DropAll}
	}
	return out
}

func (r *messageReader) data() []byte {
	if r.m["enc"] != "f16" {
		r.fail("enc", r.m["enc"])
		return nil
	}
	b, ok := r.m["data"].([]byte)
	if !ok {
		r.fail("data", "no binary")
	}
	return b
}

// number reads an integer from what a message may hold.
func number(v any) (int64, bool) {
	switch v := v.(type) {
	case int64:
		return v, true
	case int:
		return int64(v), true
	case uint16:
		return int64(v), true
	case uint32:
		return int64(v), true
	case float64:
		if v == math.Trunc(v) && math.Abs(v) <= 1<<53 {
			return int64(v), true
		}
	}
	return 0, false
}
