package gpu

import "pooled/compute/op"

// ports says what the program takes and gives.
func (p *program) ports() op.Ports {
	o := op.Ports{Cols: p.cols, Tail: p.hasTail, Capacity: p.capacity}
	if p.table != nil {
		o.Table = p.table.spec.Rows
	}
	if p.in != nil {
		o.In = p.in.width
	}
	if p.hidden != nil {
		o.Hidden = p.hidden.width
	}
	if p.logits != nil {
		o.Logits = p.logits.width
	}
	return o
}

// check refuses a run whose arguments don't fit the program. Nothing is touched before.
func (p *program) check(f op.Frame, in []float32, out *op.Out) error {
	return p.ports().Check(f, in, out)
}
