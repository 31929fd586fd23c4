package gpu

import "time"

// A graphics driver resets a device that is busy for about two seconds, and the library's wait gives up after five (spec engine.md
// 5.6). So a run that would take long is cut into several submits, each of which is waited for. How long it takes follows
// from its work and from the pace of the program's earlier submits. Work is counted in bytes of weights times columns; a key or
// value counts as a byte. Almost every run is one submit.
const (
	submitTime   = 400 * time.Millisecond
	firstPace    = 5e9 // of a program without earlier submits: of the slowest devices with a driver, per second
	softwarePace = 1e9
	slowestPace  = 1e8
	shortest     = 2 * time.Millisecond // what takes less is at least that fast: much of it is the submit itself
)

// work is what a step does for n columns from pos on.
func (s *planned) work(pos, n int) float64 {
	return float64(n) * (float64(s.bytes) + float64(s.perPos)*float64(pos+n))
}

// most is the work that one submit may hold.
func (p *program) most() float64 {
	pace := p.pace
	switch {
	case p.dev.mostWork > 0:
		return p.dev.mostWork
	case pace > 0:
	case p.dev.info.Software:
		pace = softwarePace
	default:
		pace = firstPace
	}
	return pace * p.dev.submitTime.Seconds()
}

// paced notes that the submits since p.began took until now.
func (p *program) paced() {
	took := time.Since(p.began)
	switch pace := max(slowestPace, p.work/took.Seconds()); {
	case took < shortest:
		p.pace = max(p.pace, pace)
	case p.pace == 0:
		p.pace = pace
	default:
		p.pace = (p.pace + pace) / 2
	}
}

// submit sends p.steps and p.copies to the device.
func (p *program) submit() error {
	d := p.dev
	p.began = time.Now()
	c := p.takeAhead()
	if c == nil {
		var err error
		if c, err = d.sh.encode(d.shared.frameGroup, p.steps, p.copies); err != nil {
			return err
		}
	}
	encoded := time.Now()
	if err := d.sh.submitCommands(c); err != nil {
		return err
	}
	d.submitting.Add(int64(time.Since(encoded)))
	d.encoding.Add(int64(time.Since(p.began)))
	d.launches.Add(int64(len(p.steps)))
	d.submits.Add(1)
	return nil
}

// part submits what was collected, waits for it and begins anew.
func (p *program) part() error {
	if err := p.submit(); err != nil {
		return err
	}
	p.dev.sh.wait()
	p.paced()
	p.steps, p.work = p.steps[:0], 0
	return p.run.ctx.Err()
}

// launch fills p.steps for this run and submits in parts what is too much for one; cut says whether there were any. With whole
// set nothing is submitted.
func (p *program) launch(at uint32, whole bool) (cut bool, err error) {
	r := &p.run
	p.steps, p.copies, p.work = p.steps[:0], p.copies[:0], 0
	most := p.most()
	for i := range p.planned {
		s := &p.planned[i]
		n, pos, frame := r.frame.N, r.frame.Pos, at
		if s.tail {
			n, pos, frame = r.heads, pos+r.frame.HeadFrom, at+frameRecord
		}
		if n == 0 {
			continue
		}
		x, y, z := s.x, s.y, s.z
		pipe := s.one
		switch s.shape {
		case byColumnY:
			y = uint32(n)
		case byTile:
			y = groups(n, s.tile)
			if s.cols != nil && n > s.few {
				pipe, x, y, z = s.cols, s.colsX, groups(n, s.colsTile), s.colsZ
			}
		case byPairs:
			y = uint32(mostTiles(s.pairs, n, s.tile))
		case byColumnX:
			x = uint32(n * s.columns)
		case byMatVec:
			if n > 1 {
				pipe, x, y, z = s.cols, groups(n, 4), s.colsY, s.colsZ
			}
		case bySplit:
			y, z = uint32(n), s.attend.most(pos, n)
		case byCombine:
			if y = uint32(n); pos+n <= s.attend.direct {
				continue
			}
		case byTopSlice, byTopMerge:
			if r.k == 0 {
				continue
			}
			if y = uint32(n); s.shape == byTopMerge {
				x, y = uint32(n), 1
			}
		}
		work := s.work(pos, n)
		if !whole && p.work+work > most && len(p.steps) > 0 {
			if cut, err = true, p.part(); err != nil {
				return cut, err
			}
			most = p.most()
		}
		p.work += work
		p.steps = append(p.steps, makeStep(pipe, s.group, x, y, z, frame))
	}
	return cut, nil
}
