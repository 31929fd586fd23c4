package session_test

import (
	"fmt"
	"strings"
	"testing"

	"pooled/session"
	"pooled/session/sessiontest"
)

const question = "Name the largest planet in our solar system. One sentence."

// alone returns what one device answers to two questions in a row.
func alone(t *testing.T) [2]string {
	t.Helper()
	var texts [2]string
	bubble(t, func(p *party) {
		h := p.host(sessiontest.Layers)
		p.start(h)
		for i, q := range []string{question, "And the smallest?"} {
			text, done := p.ask(h, q)
			if done.Reason != session.DoneStop && done.Reason != session.DoneLength || len(text) < 5 {
				t.Fatalf("question %d: %q, %+v", i+1, text, done)
			}
			texts[i] = text
		}
		p.must(h.Close())
	})
	return texts
}

func TestAnswersAreTheSameForEverySplit(t *testing.T) {
	want := alone(t)
	for _, c := range []struct {
		name    string
		host    int
		workers []int
		spans   string
	}{
		{"two devices", 5, []int{7}, "0-4 5-11"},
		{"two devices, one layer each way", 1, []int{11}, "0-0 1-11"},
		{"three devices", 4, []int{4, 4}, "0-3 4-7 8-11"},
		{"four devices", 2, []int{1, 6, 3}, "0-1 2-2 3-8 9-11"},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(p *party) {
				h := p.host(c.host)
				for i, n := range c.workers {
					p.worker(session.PeerID("worker-"+string(rune('a'+i))), n)
				}
				p.start(h)
				if got := spans(h.Snapshot()); got != c.spans {
					t.Fatalf("dealt %s, want %s", got, c.spans)
				}
				for i, q := range []string{question, "And the smallest?"} {
					text, done := p.ask(h, q)
					if text != want[i] {
						t.Errorf("question %d: got %q, want %q (%+v)", i+1, text, want[i], done)
					}
					if i == 1 && done.Stats.ReusedTokens == 0 {
						t.Error("the second question read everything again")
					}
				}
				p.must(h.Close())
			})
		})
	}
}

func spans(st *session.State) string {
	var b strings.Builder
	for i, s := range st.Deal.Shares {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(strings.ReplaceAll(fmt.Sprintf("%d-%d", s.Lo, s.Hi-1), " ", ""))
	}
	return b.String()
}
