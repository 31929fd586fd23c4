package wire

import (
	"testing"
	"time"
)

func TestKeepAlive(t *testing.T) {
	const ms = time.Millisecond
	type step struct {
		at    time.Duration
		moved string // "in", "out" or "" for a tick
		queue []int
		ch    int
		on    bool
	}
	three := []int{0, 0, 0}
	tests := []struct {
		name   string
		period time.Duration
		steps  []step
	}{
		{"nothing moved yet", 10 * ms, []step{{0, "", three, -1, false}}},
		{"after a frame in: at once, then every period, in turn", 10 * ms, []step{
			{0, "in", nil, 0, true}, {1 * ms, "", three, 0, true}, {5 * ms, "", three, -1, true}, {11 * ms, "", three, 1, true},
			{21 * ms, "", three, 2, true}, {31 * ms, "", three, 0, true}}},
		{"a frame sent counts as sent", 10 * ms, []step{
			{0, "out", nil, 0, true}, {9 * ms, "", three, -1, true}, {10 * ms, "", three, 0, true}}},
		{"closed and full channels are passed over", 10 * ms, []step{
			{0, "in", nil, 0, true}, {10 * ms, "", []int{-1, 1024, 1023}, 2, true}, {20 * ms, "", []int{0, 0, 0}, 0, true},
			{30 * ms, "", []int{0, 1024, -1}, 0, true}}},
		{"none free", 10 * ms, []step{{0, "in", nil, 0, true}, {10 * ms, "", []int{-1, 5000}, -1, true}, {11 * ms, "", nil, -1, true}}},
		{"stops after 1.5 s without a frame", 10 * ms, []step{
			{0, "in", nil, 0, true}, {1500 * ms, "", three, 0, true}, {1501 * ms, "", three, -1, false}, {1600 * ms, "in", nil, 0, true},
			{1610 * ms, "", three, 1, true}}},
		{"off", 0, []step{{0, "in", nil, 0, false}, {10 * ms, "", three, -1, false}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			k := KeepAlive{Period: tt.period}
			start := time.Unix(1000, 0)
			for i, s := range tt.steps {
				now := start.Add(s.at)
				if s.moved != "" {
					if got := k.Moved(now, s.moved == "out"); got != s.on {
						t.Errorf("step %d: moved: got %v, want %v", i, got, s.on)
					}
					continue
				}
				if ch, on := k.Tick(now, s.queue); ch != s.ch || on != s.on {
					t.Errorf("step %d: got %d, %v, want %d, %v", i, ch, on, s.ch, s.on)
				}
			}
		})
	}
}
