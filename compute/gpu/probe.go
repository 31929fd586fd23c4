package gpu

import (
	"encoding/binary"
	"fmt"
	"math"

	"pooled/compute/op"
	"pooled/compute/quant"
	"pooled/shaders"
)

// probe asks the device for every half and sets fastHalf when all finite ones come out exactly, subnormal ones too: some
// drivers flush those (spec engine.md 0.1), and kernels then take halves apart themselves. It runs on the device goroutine.
func (d *Device) probe() error {
	const patterns = 1 << 16
	out, err := d.createBuffer("halves", 4*patterns, storage)
	if err != nil {
		return err
	}
	defer d.freeBuffer(out)
	p := &program{dev: d, name: "probe"}
	defer p.release(d)
	if err := p.plan(&record{op: "probe", kernel: "half_probe", shape: byAll, x: patterns / elementWG,
		consts: shaders.Consts{"WG": elementWG}, views: []view{whole(out)}}, 0); err != nil {
		return fmt.Errorf("probe: %w", err)
	}
	at, err := d.nextFrame(op.Frame{N: 1, HeadFrom: 1}, 0, 0)
	if err != nil {
		return fmt.Errorf("probe: %w", err)
	}
	staging, err := d.readback(4 * patterns)
	if err != nil {
		return err
	}
	s := p.planned[0]
	steps := []step{makeStep(s.one, s.group, s.x, s.y, s.z, at)}
	if err := d.sh.submit(d.shared.frameGroup, steps, []span{makeSpan(out, 0, staging, 0, 4*patterns)}); err != nil {
		return fmt.Errorf("probe: %w", err)
	}
	data, err := d.sh.mapped(staging, 4*patterns)
	if err != nil {
		return fmt.Errorf("probe: %w", err)
	}
	if exactHalves(data) {
		d.fastHalf = 1
	}
	d.sh.unmap(staging)
	d.dropReadback()
	return nil
}

// exactHalves compares the floats of all half patterns with package quant's.
func exactHalves(data []byte) bool {
	for i := range len(data) / 4 {
		if i&0x7c00 == 0x7c00 {
			continue
		}
		if binary.LittleEndian.Uint32(data[4*i:]) != math.Float32bits(quant.FromF16(uint16(i))) {
			return false
		}
	}
	return true
}
