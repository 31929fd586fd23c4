package deal

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"testing"
)

// number is a float64 whose JSON may be null or the name of a value JSON lacks.
type number float64

func (n *number) UnmarshalJSON(b []byte) error {
	switch string(b) {
	case "null", `"NaN"`:
		*n = number(math.NaN())
	case `"Infinity"`:
		*n = number(math.Inf(1))
	default:
		f, err := strconv.ParseFloat(string(b), 64)
		*n = number(f)
		return err
	}
	return nil
}

func floats(ns []number) []float64 {
	var fs []float64
	for _, n := range ns {
		fs = append(fs, float64(n))
	}
	return fs
}

type group[In, Out any] struct {
	Cases []struct {
		Note string
		In   In
		Out  Out
	}
}

// vectors reads one group of plan.json.
func vectors[In, Out any](t *testing.T, name string) group[In, Out] {
	t.Helper()
	dir, other := os.LookupEnv("POOLED_VECTORS")
	if !other {
		dir = "testdata"
	}
	data, err := os.ReadFile(filepath.Join(dir, "plan.json"))
	if other && errors.Is(err, fs.ErrNotExist) {
		t.Skip("no plan.json in POOLED_VECTORS")
	}
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	var g group[In, Out]
	raw, there := all[name]
	if !there && other {
		t.Skipf("no %s in POOLED_VECTORS", name)
	}
	if err := json.Unmarshal(raw, &g); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if len(g.Cases) == 0 {
		t.Fatalf("%s: no cases", name)
	}
	return g
}

func TestVectorsPlanLayerCaps(t *testing.T) {
	type in struct {
		Pledges               []number
		LayerBytes, HostBytes float64
	}
	for i, c := range vectors[in, []int](t, "layer_caps").Cases {
		if got := Caps(floats(c.In.Pledges), c.In.LayerBytes, c.In.HostBytes); !reflect.DeepEqual(got, c.Out) {
			t.Errorf("case %d: got %v, want %v", i, got, c.Out)
		}
	}
}

func TestVectorsPlanGBUp(t *testing.T) {
	for i, c := range vectors[float64, float64](t, "gb_up").Cases {
		if got := Up(c.In); got != c.Out {
			t.Errorf("case %d: Up(%v): got %v, want %v", i, c.In, got, c.Out)
		}
	}
}

func TestVectorsPlanSplitWithin(t *testing.T) {
	type in struct {
		L    int
		Caps []number
		Max  []int
	}
	type out struct {
		Assigned []int
		Short    int
	}
	for i, c := range vectors[in, out](t, "plan_split_within").Cases {
		got := Within(c.In.L, floats(c.In.Caps), c.In.Max)
		if c.Out.Short > 0 {
			if got != nil {
				t.Errorf("case %d: got %v, want a refusal", i, got)
			}
			continue
		}
		if !reflect.DeepEqual(got, c.Out.Assigned) {
			t.Errorf("case %d: got %v, want %v", i, got, c.Out.Assigned)
		}
	}
}

func TestVectorsPlanForSpeed(t *testing.T) {
	type in struct {
		L        int
		Caps, Ms []number
		Phone    []bool
	}
	type out struct {
		Assigned []int
		Short    int
	}
	for i, c := range vectors[in, out](t, "plan_for_speed").Cases {
		// A pledge of cap layers of one byte, nothing held by the host besides: the caps are the pledges.
		got := Make(Room{Layers: c.In.L, LayerBytes: 1, Pledges: floats(c.In.Caps), Phone: c.In.Phone, Ms: floats(c.In.Ms)})
		if got.Fit.OK != (c.Out.Short == 0) {
			t.Errorf("case %d: fits %v, want short %d", i, got.Fit.OK, c.Out.Short)
			continue
		}
		if got.Fit.OK && !reflect.DeepEqual(got.Assigned, c.Out.Assigned) {
			t.Errorf("case %d: got %v, want %v", i, got.Assigned, c.Out.Assigned)
		}
	}
}

func TestVectorsPlanPhones(t *testing.T) {
	type in struct {
		L     int
		Caps  []float64
		Phone []bool
	}
	for i, c := range vectors[in, []int](t, "phones_to_leave_out").Cases {
		caps := make([]int, len(c.In.Caps))
		for j, f := range c.In.Caps {
			caps[j] = int(f)
		}
		got := phonesOut(Room{Layers: c.In.L, Phone: c.In.Phone}, caps)
		if len(got) != len(c.Out) || (len(got) > 0 && !reflect.DeepEqual(got, c.Out)) {
			t.Errorf("case %d: got %v, want %v", i, got, c.Out)
		}
	}
}

func TestVectorsPlanRoomFit(t *testing.T) {
	type in struct {
		L                     int
		LayerBytes, HostBytes float64
		PledgesGB, Pledges    []number
	}
	type out struct {
		Fits    bool
		Caps    []int
		Missing int
		Short   number
		Raise   []number
	}
	for i, c := range vectors[in, out](t, "room_fit").Cases {
		p := floats(c.In.Pledges)
		for _, gb := range c.In.PledgesGB {
			p = append(p, float64(gb)*GB)
		}
		got := Check(Room{Layers: c.In.L, LayerBytes: c.In.LayerBytes, HostBytes: c.In.HostBytes, Pledges: p})
		want := Fit{OK: c.Out.Fits, Caps: c.Out.Caps, Missing: c.Out.Missing, Short: float64(c.Out.Short), Raise: floats(c.Out.Raise)}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("case %d: got %+v, want %+v", i, got, want)
		}
	}
}

// shapes are the catalogue's bytes that deal_room leaves out (spec room.md 2.3).
var shapes = map[string]struct {
	layers                int
	layer, kv16, kv8, own float64
}{
	"qwen3-1.7b":      {28, 53494784, 8192, 8192, 661225472},
	"qwen3.8-27b":     {64, 223970464, 1024, 576, 2738464768},
	"qwen3.6-35b-moe": {40, 498197568, 512, 288, 1887262720},
}

func TestVectorsPlanDealRoom(t *testing.T) {
	type in struct {
		Model, KV, Mode string
		Ctx             float64
		PledgesGB       []number
		Ms              []number
		Phone           []bool
		PhoneLayers     bool
		RAMGB           []number
	}
	type out struct {
		Fits     bool
		Assigned []int
		Ranges   [][2]int
		Held     []float64
		Used     []int
		Out      map[string]Out
		Offload  json.RawMessage
		Short    number
	}
	ran := 0
	for _, c := range vectors[in, out](t, "deal_room").Cases {
		t.Run(c.Note, func(t *testing.T) {
			shape, known := shapes[c.In.Model]
			if string(c.Out.Offload) != "null" || !known {
				t.Skip("experts in RAM are not dealt here")
			}
			ran++
			r := Room{Layers: shape.layers, LayerBytes: shape.layer + c.In.Ctx*shape.kv16, HostBytes: shape.own,
				Phone: c.In.Phone, Ms: floats(c.In.Ms), Spread: c.In.Mode == "memory", PhoneLayers: c.In.PhoneLayers}
			if c.In.KV == "q8" {
				r.LayerBytes = shape.layer + c.In.Ctx*shape.kv8
			}
			for _, gb := range c.In.PledgesGB {
				r.Pledges = append(r.Pledges, float64(gb)*GB)
			}
			p := Make(r)
			checkPlan(t, p, c.Out.Fits, c.Out.Used, c.Out.Assigned, c.Out.Out)
			for k, i := range c.Out.Used {
				if lo, hi := p.Lo[i], p.Lo[i]+p.Assigned[i]; lo != c.Out.Ranges[k][0] || hi != c.Out.Ranges[k][1] {
					t.Errorf("device %d: got [%d, %d), want %v", i, lo, hi, c.Out.Ranges[k])
				}
				if p.Held[i] != c.Out.Held[k] {
					t.Errorf("device %d holds %v, want %v", i, p.Held[i], c.Out.Held[k])
				}
			}
			if p.Fit.Short != float64(c.Out.Short) {
				t.Errorf("short: got %v, want %v", p.Fit.Short, c.Out.Short)
			}
		})
	}
	if _, other := os.LookupEnv("POOLED_VECTORS"); !other && ran < 10 {
		t.Errorf("only %d cases ran", ran)
	}
}

func TestVectorsPlanDealRoomRandom(t *testing.T) {
	type in struct {
		L                     int
		LayerBytes, HostBytes float64
		Pledges, Ms           []number
		Mode                  string
		Phone                 []bool
		PhoneLayers           bool
	}
	type out struct {
		Fits     bool
		Caps     []int
		Short    number
		Raise    []number
		Used     []int
		Assigned []int
		Out      map[string]Out
	}
	for i, c := range vectors[in, out](t, "deal_room_random").Cases {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			p := Make(Room{Layers: c.In.L, LayerBytes: c.In.LayerBytes, HostBytes: c.In.HostBytes,
				Pledges: floats(c.In.Pledges), Phone: c.In.Phone, Ms: floats(c.In.Ms),
				Spread: c.In.Mode == "memory", PhoneLayers: c.In.PhoneLayers})
			checkPlan(t, p, c.Out.Fits, c.Out.Used, c.Out.Assigned, c.Out.Out)
			if !reflect.DeepEqual(p.Fit.Caps, c.Out.Caps) {
				t.Errorf("caps: got %v, want %v", p.Fit.Caps, c.Out.Caps)
			}
			if !reflect.DeepEqual(p.Fit.Raise, floats(c.Out.Raise)) {
				t.Errorf("raise: got %v, want %v", p.Fit.Raise, c.Out.Raise)
			}
		})
	}
}

// checkPlan compares a plan with one that lists only the devices used.
func checkPlan(t *testing.T, p Plan, fits bool, used, assigned []int, out map[string]Out) {
	t.Helper()
	if p.Fit.OK != fits {
		t.Fatalf("fits: got %v, want %v", p.Fit.OK, fits)
	}
	if !fits {
		if p.Assigned != nil {
			t.Errorf("dealt %v in a room that is short", p.Assigned)
		}
		return
	}
	want := make([]int, len(p.Assigned))
	for k, i := range used {
		want[i] = assigned[k]
	}
	if !reflect.DeepEqual(p.Assigned, want) {
		t.Errorf("assigned: got %v, want %v", p.Assigned, want)
	}
	got := make(map[string]Out)
	for i, o := range p.Out {
		got[strconv.Itoa(i)] = o
	}
	if len(got) != len(out) || (len(out) > 0 && !reflect.DeepEqual(got, out)) {
		t.Errorf("out: got %v, want %v", got, out)
	}
}

func TestVectorsPlanShortNote(t *testing.T) {
	type in struct {
		Label                 string
		L                     int
		Pledges               []number
		LayerBytes, HostBytes float64
		Names                 []string
		SpareGB               []number
	}
	type out struct {
		Note      string
		ShortBy   float64
		ShortByGB float64
	}
	for i, c := range vectors[in, out](t, "short_note").Cases {
		f := Check(Room{Layers: c.In.L, LayerBytes: c.In.LayerBytes, HostBytes: c.In.HostBytes, Pledges: floats(c.In.Pledges)})
		var spare []float64
		for _, s := range c.In.SpareGB {
			spare = append(spare, float64(s)*GB)
		}
		if got := f.ShortBy(spare); got != c.Out.ShortBy {
			t.Errorf("case %d: short by %v, want %v", i, got, c.Out.ShortBy)
		}
		if got := Up(f.ShortBy(spare)); got != c.Out.ShortByGB {
			t.Errorf("case %d: short by %v GB, want %v", i, got, c.Out.ShortByGB)
		}
		what, _, _ := f.Sentences(c.In.Label, c.In.Names, 0, spare)
		if (what == "") != (c.Out.Note == "") {
			t.Errorf("case %d: got %q, want a note: %v", i, what, c.Out.Note != "")
		}
	}
}

func TestSentencesNameAmountsAndGivers(t *testing.T) {
	r := Room{Layers: 28, LayerBytes: 187712512, HostBytes: 661225472, Pledges: []float64{3 * GB, 1 * GB}}
	what, why, do := Check(r).Sentences("Qwen3 1.7B", []string{"Laptop", "iPhone"}, 4*GB, []float64{6 * GB, 0})
	for _, c := range []struct{ name, got, want string }{
		{"what", what, "this room is 1.7 GB short for Qwen3 1.7B"},
		{"why", why, "2 devices lend 4 GB in all"},
		{"do", do, "add a device or lend more: Laptop has 1.7 GB more to give"},
	} {
		if c.got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, c.got, c.want)
		}
	}
}
