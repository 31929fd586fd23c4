package gpu

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/cogentcore/webgpu/wgpu"

	"pooled/compute/op"
	"pooled/shaders"
)

// Tuning. How many rows a thread has and how many threads a workgroup has changes no bits (rows.wgsl), and what is best depends on the
// device. So when a program is built, each kind of matrix that it reads is tried with other numbers, on the program's own matrices one
// after the other, as a token reads them, and the fastest is kept (spec engine.md 5.3). What was found serves every later program of
// the device. LANES decides the order of sums and stays.
const (
	tuneMargin   = 0.03                   // a trial has to be faster than the default by this part
	tuneTime     = time.Second            // that a device may spend on all of it
	tuneLeast    = 1 << 20                // bytes of a matrix that are worth it
	tuneBytes    = 256 << 20              // of weights in a measured submit
	tuneLaunches = 64                     // in a measured submit
	tuneRounds   = 4                      // of which the least time of each trial counts
	tuneSlow     = 100 * time.Millisecond // a submit that takes this long ends the trials of its kind
	tuneCols     = 4                      // columns of a measured run of several
	keepStaging  = 64 << 10               // bytes of readback memory that tuning may leave behind
)

// tuning is what a device found out. It belongs to the device goroutine.
type tuning struct {
	shapes map[string]matVecShape // by kind of matrix
	spent  time.Duration
	kinds  int                       // that were tried
	timer  func(i int) time.Duration // when set, everything is tried, also on a software adapter, and takes what this says (tests)
}

// trials are ways to do the same; number 0 is the default.
type trials struct {
	n    int
	same func(i int) bool                   // whether trial i gives the bits of the default
	time func(i int) (time.Duration, error) // of one measured submit
}

// pick is the fastest trial that gives the default's bits, the default unless it is beaten by tuneMargin. The trials take turns, so
// that what disturbs the device for a while disturbs all of them. A trial with an error is out; an error of the default ends it.
func (t trials) pick() int {
	least := make([]time.Duration, t.n)
	out := make([]bool, t.n)
	for i := 1; i < t.n; i++ {
		out[i] = !t.same(i)
	}
	for range tuneRounds {
		for i := range t.n {
			if out[i] {
				continue
			}
			took, err := t.time(i)
			switch {
			case err != nil && i == 0, took > tuneSlow && i == 0:
				return 0
			case err != nil:
				out[i] = true
			case least[i] == 0 || took < least[i]:
				least[i] = took
			}
		}
	}
	best, limit := 0, time.Duration(float64(least[0])*(1-tuneMargin))
	for i := 1; i < t.n; i++ {
		if !out[i] && least[i] < limit && (best == 0 || least[i] < least[best]) {
			best = i
		}
	}
	return best
}

// tuneShapes are the default and the others that are tried: rows of a thread (at least least) and threads of a workgroup.
func tuneShapes(s matVecShape, least int, several bool) []matVecShape {
	others := []matVecShape{{0, 2, 128}, {0, 4, 128}, {0, 1, 128}, {0, 4, 64}, {0, 4, 256}, {0, 2, 256}}
	if several {
		others = []matVecShape{{0, 4, 128}, {0, 2, 128}, {0, 4, 64}}
	}
	all := []matVecShape{s}
	for _, o := range others {
		if o.lanes = s.lanes; o != s && o.rows >= least && o.wg >= o.lanes {
			all = append(all, o)
		}
	}
	return all
}

// tunable says whether a record's shape may be chosen by trials.
func (r *record) tunable() bool {
	return r.shape == byMatVec && r.matrix != nil && !r.wide && !r.matrix.format.any()
}

// shapeOf is the shape in a form's constants.
func shapeOf(c shaders.Consts) matVecShape {
	return matVecShape{int(c["LANES"]), int(c["ROWS"]), int(c["WG"])}
}

// kind names what has the same shape: the kernel, its constants but for the shape, the rows.
func (r *record) kind(several bool) string {
	name, c := r.kernel, maps.Clone(r.consts)
	if several {
		name, c = r.cols, maps.Clone(r.colsConsts)
	}
	delete(c, "ROWS")
	delete(c, "WG")
	return fmt.Sprint(pipelineKey(name, c), " rows=", r.rows)
}

// share gives a form the shape s.
func (r *record) share(s matVecShape, several bool) {
	c, y, z := r.consts, &r.y, &r.z
	if several {
		c, y, z = r.colsConsts, &r.colsY, &r.colsZ
	}
	c["ROWS"], c["WG"] = uint32(s.rows), uint32(s.wg)
	*y, *z = fold(groups(r.rows, s.rowsPerWG()))
}

// tune gives the records' matrix kernels the shapes that are best here. p.params holds the records' parameters. Nothing fails
// because of it: what can't be tried keeps its shape.
func (p *program) tune(recs []record) {
	d := p.dev
	if d.plain || d.shape != (matVecShape{}) || d.info.Software && d.tuning.timer == nil {
		return
	}
	kinds := map[string][]int{} // records by kind
	var names []string
	for i := range recs {
		if r := &recs[i]; r.tunable() && (r.bytes >= tuneLeast || d.tuning.timer != nil) {
			name := r.kind(false)
			if kinds[name] == nil {
				names = append(names, name)
			}
			kinds[name] = append(kinds[name], i)
		}
	}
	size := func(name string) (n int64) { // bytes read for a token
		for _, i := range kinds[name] {
			n += recs[i].bytes
		}
		return n
	}
	slices.SortStableFunc(names, func(a, b string) int { return int((size(b) - size(a)) >> 10) }) // what matters most first
	for _, several := range []bool{false, true} {
		for _, name := range names {
			list := kinds[name]
			s := p.tuneKind(recs, list, several)
			for _, i := range list {
				recs[i].share(s, several)
			}
		}
	}
}

// tuneKind is the best shape for the records of one kind.
func (p *program) tuneKind(recs []record, list []int, several bool) matVecShape {
	d, first := p.dev, &recs[list[0]]
	key := first.kind(several)
	s, ok := d.tuning.shapes[key]
	if ok {
		return s
	}
	c, n := first.consts, 1
	if several {
		c, n = first.colsConsts, tuneCols
	}
	s = shapeOf(c)
	if d.tuning.spent >= tuneTime && d.tuning.timer == nil {
		return s
	}
	began := time.Now()
	least := 1
	if first.op == gateUpOp { // whose rows come in pairs
		least = 2
	}
	all := tuneShapes(s, least, several)
	b := &trialBench{p: p, recs: recs, list: list, several: several, n: n, shapes: all, until: began.Add(tuneTime - d.tuning.spent)}
	if err := b.open(); err == nil {
		s = all[trials{len(all), b.same, b.time}.pick()]
	}
	b.close()
	if d.tuning.shapes == nil {
		d.tuning.shapes = make(map[string]matVecShape)
	}
	d.tuning.shapes[key] = s
	d.tuning.kinds++
	d.tuning.spent += time.Since(began)
	return s
}

// trialBench runs a kind's kernels on memory of its own, but for the matrices, norms and parameters.
type trialBench struct {
	p       *program
	recs    []record
	list    []int
	several bool
	n       int // columns
	shapes  []matVecShape
	until   time.Time // when no further kernel is to be compiled; zero: never

	x, out *wgpu.Buffer
	groups []*wgpu.BindGroup
	spans  []span // results of the first record
	clear  []span
	result int64 // bytes of them
	want   []byte
	steps  []step
}

// open makes the memory and the bind groups.
func (b *trialBench) open() (err error) {
	d, first := b.p.dev, &b.recs[b.list[0]]
	k, ok := shaders.Lookup(first.kernel)
	if !ok {
		return op.ErrKernel
	}
	var size int64
	for i, v := range first.views {
		if k.Bindings[i] == 'w' {
			size = align(size+v.near, alignment)
		}
	}
	usage := storage | wgpu.BufferUsageUniform
	if b.x, err = d.createBuffer("trial", first.views[0].near, usage); err != nil {
		return err
	}
	if b.out, err = d.createBuffer("trial", max(size, alignment), usage); err != nil {
		return err
	}
	if err := d.upload(b.x, 0, trialValues(first.views[0].near)); err != nil {
		return err
	}
	for _, i := range b.list[:min(len(b.list), tuneLaunches)] {
		r, at := &b.recs[i], int64(0)
		views := slices.Clone(r.views)
		for j := range views {
			v := &views[j]
			if v.near > 0 {
				v.size = v.near
			}
			switch {
			case j == 0:
				v.buf = b.x
			case k.Bindings[j] == 'w' && v.near > 0:
				v.buf, v.off = b.out, at
				at = align(at+v.near, alignment)
			}
		}
		views = append(views, view{buf: b.p.params, off: int64(i) * alignment, size: int64(len(paramBytes(r.params)))})
		g, err := d.bindGroup(r.kernel, k.Bindings, views, r.arrays())
		if err != nil {
			return err
		}
		b.groups = append(b.groups, g)
	}
	return b.results(first, k.Bindings)
}

// results prepares clearing and reading back what the first record writes.
func (b *trialBench) results(first *record, bindings string) error {
	var at, sum int64
	for i, v := range first.views {
		if bindings[i] == 'w' && v.near > 0 {
			sum += v.near / op.MaxCols * int64(b.n)
		}
	}
	staging, err := b.p.dev.readback(sum)
	if err != nil {
		return err
	}
	for i, v := range first.views {
		if bindings[i] != 'w' || v.near == 0 {
			continue
		}
		size := v.near / op.MaxCols * int64(b.n)
		b.spans = append(b.spans, makeSpan(b.out, uint64(at), staging, uint64(b.result), uint64(size)))
		b.clear = append(b.clear, makeSpan(nil, 0, b.out, uint64(at), uint64(v.near)))
		b.result += size
		at = align(at+v.near, alignment)
	}
	return nil
}

func (b *trialBench) close() {
	for _, g := range b.groups {
		g.Release()
	}
	b.p.dev.freeBuffer(b.x)
	b.p.dev.freeBuffer(b.out)
	if s := b.p.dev.shared.staging; s != nil && b.result > keepStaging {
		b.p.dev.dropReadback()
	}
}

// fill makes the steps of trial i: one for each matrix of the list, again and again until they read enough; all false: the first only.
func (b *trialBench) fill(i int, all bool) error {
	d := b.p.dev
	r := b.recs[b.list[0]]
	r.consts, r.colsConsts = maps.Clone(r.consts), maps.Clone(r.colsConsts)
	r.share(b.shapes[i], b.several)
	name, consts, x, y, z := r.kernel, r.consts, uint32(1), r.y, r.z
	if b.several {
		name, consts, x, y, z = r.cols, r.colsConsts, groups(b.n, 4), r.colsY, r.colsZ
	}
	pipe, err := d.pipeline(name, consts)
	if err != nil {
		return err
	}
	at, err := d.nextFrame(op.Frame{N: b.n, HeadFrom: b.n}, 0, 0)
	if err != nil {
		return err
	}
	launches := 1
	if all {
		launches = int(min(max(tuneBytes/r.bytes, 1), tuneLaunches))
	}
	b.steps = b.steps[:0]
	for j := range launches {
		b.steps = append(b.steps, makeStep(pipe, b.groups[j%len(b.groups)], x, y, z, at))
	}
	return nil
}

// same compares the results for one matrix with those of trial 0. Some compilers take a second for a kernel: those that come too late
// count as different.
func (b *trialBench) same(i int) bool {
	if !b.until.IsZero() && time.Now().After(b.until) && b.p.dev.tuning.timer == nil {
		return false
	}
	if b.want == nil {
		want, err := b.values(0)
		if err != nil {
			return false
		}
		b.want = want
	}
	got, err := b.values(i)
	return err == nil && bytes.Equal(got, b.want)
}

// values are the results of trial i for the first matrix.
func (b *trialBench) values(i int) ([]byte, error) {
	sh := b.p.dev.sh
	if err := b.fill(i, false); err != nil {
		return nil, err
	}
	if err := sh.submit(nil, nil, b.clear); err != nil {
		return nil, err
	}
	if err := sh.submit(b.p.dev.shared.frameGroup, b.steps, b.spans); err != nil {
		return nil, err
	}
	staging := b.p.dev.shared.staging
	data, err := sh.mapped(staging, int(b.result))
	if err != nil {
		b.p.dev.dropReadback() // its mapping may still be pending
		return nil, err
	}
	defer sh.unmap(staging)
	return bytes.Clone(data), nil
}

// time is how long the device works on trial i.
func (b *trialBench) time(i int) (time.Duration, error) {
	if timer := b.p.dev.tuning.timer; timer != nil {
		return timer(i), nil
	}
	sh := b.p.dev.sh
	if err := b.fill(i, true); err != nil {
		return 0, err
	}
	c, err := sh.encode(b.p.dev.shared.frameGroup, b.steps, nil)
	if err != nil {
		return 0, err
	}
	began := time.Now()
	if err := sh.submitCommands(c); err != nil {
		return 0, err
	}
	sh.wait()
	return time.Since(began), sh.err("trial")
}

// trialValues are size bytes of activations between -1 and 1.
func trialValues(size int64) []byte {
	out := make([]byte, size)
	x := uint32(1)
	for i := 0; i+4 <= len(out); i += 4 {
		x = x*1664525 + 1013904223
		binary.LittleEndian.PutUint32(out[i:], math.Float32bits(float32(int32(x))/(1<<31)))
	}
	return out
}
