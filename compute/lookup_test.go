package compute_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pooled/compute"
)

func TestVectorsLookup(t *testing.T) {
	var file struct {
		Lookup struct {
			Cases []struct {
				In struct {
					Ctx []int32
					K   int
				}
				Out []int32
			}
		}
	}
	vectors(t, "lookup.json", &file)
	if len(file.Lookup.Cases) == 0 {
		t.Fatal("no cases")
	}
	for i, c := range file.Lookup.Cases {
		if got := compute.Lookup(c.In.Ctx, c.In.K); !slices.Equal(got, c.Out) {
			t.Errorf("case %d: %v, at most %d: got %v, want %v", i, c.In.Ctx, c.In.K, got, c.Out)
		}
	}
}

func TestLookupBounds(t *testing.T) {
	long := make([]int32, 20000) // all different, but for one pair that comes back
	for i := range long {
		long[i] = int32(i) + 10
	}
	end := append(slices.Clone(long), 1, 2)
	for _, c := range []struct {
		name  string
		place int
		want  []int32
	}{
		{"just inside", len(end) - 16384, []int32{3}},
		{"just outside", len(end) - 16385, nil},
	} {
		ctx := slices.Clone(end)
		copy(ctx[c.place:], []int32{1, 2, 3})
		if got := compute.Lookup(ctx, 1); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
	for name, got := range map[string][]int32{
		"nothing": compute.Lookup(nil, 3), "one token": compute.Lookup([]int32{1}, 3), "none wanted": compute.Lookup([]int32{1, 2, 3, 1, 2}, 0),
		"less than none": compute.Lookup([]int32{1, 2, 3, 1, 2}, -4),
	} {
		if len(got) != 0 {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

// Depth follows speeds: here 5 is the fastest at first, 7 later.
func TestDepth(t *testing.T) {
	d := compute.NewDepth()
	speed := map[int]float64{3: 10, 5: 30, 7: 20}
	var got []int
	step := func() {
		k := d.Next()
		got = append(got, k)
		d.Note(6, time.Duration(6/speed[k]*float64(time.Second)))
	}
	for range 31 {
		step()
	}
	want := []int{3, 3, 3, 5, 7, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 7, 5}
	if !slices.Equal(got[:17], want) {
		t.Errorf("first steps: got %v, want %v", got[:17], want)
	}
	if i := slices.IndexFunc(got[17:31], func(k int) bool { return k != 5 }); i >= 0 {
		t.Errorf("step %d: got %d, want 5", 18+i, got[17+i])
	}
	speed = map[int]float64{3: 10, 5: 12, 7: 40}
	got = nil
	for range 60 {
		step()
	}
	if got[0] != 3 { // step 32: the turn of the other one
		t.Errorf("step 32: got %d, want 3", got[0])
	}
	if last := got[len(got)-5:]; !slices.Equal(last, []int{7, 7, 7, 7, 7}) {
		t.Errorf("in the end: got %v, want 7", last)
	}
	var alone compute.Depth
	for range 40 {
		if k := alone.Next(); k != 3 {
			t.Fatalf("alone: got %d, want 3", k)
		}
		alone.Note(1, time.Second)
	}
	if one := compute.NewDepth(4); one.Next() != 4 {
		t.Error("one candidate is not the answer")
	}
}

// What Lookup finds in one pass is what a search for each length finds.
func TestLookupEqualsSearch(t *testing.T) {
	search := func(context []int32, k int) []int32 {
		for n := 4; n >= 2; n-- {
			for end, at := len(context)-n, len(context)-n-1; at >= max(0, len(context)-16384); at-- {
				if slices.Equal(context[at:at+n], context[end:]) {
					return context[at+n : min(at+n+k, len(context))]
				}
			}
		}
		return nil
	}
	random, found := rand.New(rand.NewPCG(3, 4)), 0
	for range 3000 {
		context := make([]int32, random.IntN(60))
		for i := range context {
			context[i] = int32(random.IntN(4))
		}
		got, want := compute.Lookup(context, 5), search(context, 5)
		if !slices.Equal(got, want) {
			t.Fatalf("%v: got %v, want %v", context, got, want)
		}
		if len(want) > 0 {
			found++
		}
	}
	if found < 1000 {
		t.Errorf("only %d of 3000 texts repeat themselves", found)
	}
}

func BenchmarkLookup(b *testing.B) {
	context := make([]int32, 16384)
	for i := range context {
		context[i] = int32(i * i % 5003)
	}
	for b.Loop() {
		compute.Lookup(context, 7)
	}
}
