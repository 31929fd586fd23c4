package gpu

import "time"

// submitBytes is how many bytes of weights one submit may read: a graphics driver resets a device that is busy for about two
// seconds, and the library's wait gives up after five (spec engine.md 5.6). At 10 GB/s this is 0.4 s. Only prefill on big shards
// and devices' slowest models get there; everything else is one submit.
const submitBytes = 4 << 30

// submit sends p.steps and p.copies to the device.
func (p *program) submit() error {
	d := p.dev
	began := time.Now()
	c := p.takeAhead()
	if c == nil {
		var err error
		if c, err = d.sh.encode(d.shared.frameGroup, p.steps, p.copies); err != nil {
			return err
		}
	}
	if err := d.sh.submitCommands(c); err != nil {
		return err
	}
	d.encoding.Add(int64(time.Since(began)))
	d.launches.Add(int64(len(p.steps)))
	d.submits.Add(1)
	return nil
}

// launch fills p.steps for this run. When they read more weights than one submit should, the first part is submitted and
// waited for.
func (p *program) launch(at uint32) error {
	r := &p.run
	p.steps, p.copies = p.steps[:0], p.copies[:0]
	var bytes int64
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
		case byColumnX:
			x = uint32(n * s.columns)
		case byMatVec:
			if n > 1 {
				pipe, x, y, z = s.cols, groups(n, 4), s.colsY, s.colsZ
			}
			if bytes += s.bytes * int64(x); bytes > p.dev.submitBytes && len(p.steps) > 0 {
				if err := p.submit(); err != nil {
					return err
				}
				p.dev.sh.wait()
				p.steps, bytes = p.steps[:0], s.bytes*int64(x)
			}
		case byDirect:
			if y = uint32(n); pos+1 > int(p.dev.directMax()) {
				continue
			}
		case bySplit, byCombine:
			if y = uint32(n); pos+n <= int(p.dev.directMax()) {
				continue
			}
			if s.shape == bySplit {
				z = mostSplits(pos, n, s.splits, int(p.dev.directMax()))
			}
		case byTopSlice, byTopMerge:
			if r.k == 0 {
				continue
			}
			if y = uint32(n); s.shape == byTopMerge {
				x, y = uint32(n), 1
			}
		}
		p.steps = append(p.steps, makeStep(pipe, s.group, x, y, z, frame))
	}
	return nil
}

// mostSplits is the largest number of splits of the n columns from pos on; splits.wgsl cuts them in the same way.
func mostSplits(pos, n, splits, directMax int) uint32 {
	most := 0
	for c := range n {
		if count := pos + c + 1; count > directMax {
			length := ((count+splits-1)/splits + 63) / 64 * 64
			most = max(most, (count+length-1)/length)
		}
	}
	return uint32(most)
}
