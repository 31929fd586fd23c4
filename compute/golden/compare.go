package golden

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// Tolerance says how far a result may be from the golden one.
type Tolerance struct {
	Logit  float64 // of each logit and of lse
	Margin float64 // a golden margin up to this is a close call: the engine may have picked the other token
}

// Tolerances of spec engine.md 9.4.
var (
	F32 = Tolerance{Logit: 2e-3, Margin: 0.1} // caches in f32
	F16 = Tolerance{Logit: 5e-2, Margin: 0.1} // caches in f16
)

// maxReports bounds what Compare says about one pair of results.
const maxReports = 12

// Report is what Compare saw.
type Report struct {
	WorstLogit float64 // largest distance of a logit or lse
	Steps      int     // greedy tokens compared
	CloseCalls int     // of those, differing within the tolerance
}

// Compare compares got with the golden want. The error joins one line per difference, a dozen at most.
//
// Logits are compared by rank, which holds also where two close ones changed places, and by token where both lists have
// it. Greedy tokens must be the golden ones, except at a close call; after two close calls in a row the rest is not
// compared. got must have followed want's tokens (Options.Follow) or have picked the same ones so far.
func Compare(got, want *Result, tol Tolerance) (Report, error) {
	c := &comparison{tol: tol}
	c.check(slices.Equal(got.Prompt, want.Prompt), "another prompt")
	c.check(len(got.Logits) == len(want.Logits), "%d positions, want %d", len(got.Logits), len(want.Logits))
	c.check(len(got.Greedy) >= len(want.Greedy), "%d greedy tokens, want %d", len(got.Greedy), len(want.Greedy))
	if len(c.errs) > 0 {
		return c.Report, errors.Join(c.errs...)
	}
	for i := range want.Logits {
		c.position(i, got.Logits[i], want.Logits[i])
	}
	c.greedy(got.Greedy, want.Greedy)
	if c.hidden > 0 {
		c.errs = append(c.errs, fmt.Errorf("and %d more", c.hidden))
	}
	return c.Report, errors.Join(c.errs...)
}

type comparison struct {
	Report
	tol    Tolerance
	errs   []error
	hidden int
}

func (c *comparison) check(ok bool, format string, args ...any) {
	switch {
	case ok:
	case len(c.errs) < maxReports:
		c.errs = append(c.errs, fmt.Errorf(format, args...))
	default:
		c.hidden++
	}
}

// near notes the distance and checks it; NaN is never near.
func (c *comparison) near(got, want float64, format string, args ...any) {
	d := math.Abs(got - want)
	c.WorstLogit = max(c.WorstLogit, d)
	c.check(d <= c.tol.Logit, "%s is %.6f, want %.6f (off by %.2g, at most %g)", fmt.Sprintf(format, args...), got, want, d, c.tol.Logit)
}

func (c *comparison) position(i int, got, want Position) {
	c.near(float64(got.LSE), float64(want.LSE), "position %d: lse", i)
	if len(got.Top) != len(want.Top) {
		c.check(false, "position %d: %d logits, want %d", i, len(got.Top), len(want.Top))
		return
	}
	for rank, w := range want.Top {
		c.near(got.Top[rank].Logit, w.Logit, "position %d: logit number %d", i, rank+1)
		at := slices.IndexFunc(got.Top, func(p Pair) bool { return p.ID == w.ID })
		if at >= 0 {
			c.near(got.Top[at].Logit, w.Logit, "position %d: logit of token %d", i, w.ID)
			continue
		}
		// The token is below the last one kept, so its logit is at most that one's.
		least := got.Top[len(got.Top)-1].Logit
		c.check(w.Logit-least <= c.tol.Logit, "position %d: token %d is not among the best %d", i, w.ID, len(got.Top))
	}
}

func (c *comparison) greedy(got, want []Step) {
	close := 0
	for i, w := range want {
		c.Steps++
		same := got[i].ID == w.ID
		if w.Margin > c.tol.Margin {
			close = 0
			c.check(same, "greedy token %d is %d, want %d (margin %.5f)", i+1, got[i].ID, w.ID, w.Margin)
		} else {
			close++
		}
		if same { // both logits of the margin may be off
			d := math.Abs(got[i].Margin - w.Margin)
			c.check(d <= 2*c.tol.Logit, "greedy token %d: margin is %.5f, want %.5f", i+1, got[i].Margin, w.Margin)
		} else {
			c.CloseCalls++
		}
		if close == 2 {
			return
		}
	}
}
