package widgets

import "github.com/gdamore/tcell/v2"

// Roster is a table. Columns that don't fit are dropped whole, the one with the highest Drop first; the last kept
// column with Grow takes up what is left.
type Roster struct {
	base
	m RosterModel
	v viewport
}

// RosterModel is what a Roster shows.
type RosterModel struct {
	Columns []Column
	Rows    []RosterRow
	Notes   []Line // under the rows
}

// Column describes a column. Its width is that of its longest cell, title included, at most Max.
type Column struct {
	Title Text
	Max   int // cells, 0 for no limit
	Drop  int // 0 is never dropped
	Right bool
}

// RosterRow is one row, a cell for each column. Hue is the role of the first cell; Role that of the others.
type RosterRow struct {
	Cells []Text
	Hue   Role
	Role  Role
}

const colGap = 2

// NewRoster returns an empty table.
func NewRoster(look *Look) *Roster {
	return &Roster{base: newBase(look), v: viewport{fromTop: true}}
}

// SetModel replaces what is shown.
func (r *Roster) SetModel(m RosterModel) { r.m = m }

// Height returns the lines it takes to show everything.
func (r *Roster) Height() int { return 1 + len(r.m.Rows) + len(r.m.Notes) }

// fitColumns returns which columns are shown in w cells and how wide each is.
func fitColumns(m RosterModel, w int) (shown, widths []int) {
	need := 0
	all := make([]int, len(m.Columns))
	for i, col := range m.Columns {
		all[i] = Width(col.Title)
		for _, row := range m.Rows {
			if i < len(row.Cells) {
				all[i] = max(all[i], Width(row.Cells[i]))
			}
		}
		if col.Max > 0 {
			all[i] = min(all[i], col.Max)
		}
		shown = append(shown, i)
		need += all[i] + colGap
	}
	for need-colGap > w {
		worst := -1
		for at, i := range shown {
			if m.Columns[i].Drop > 0 && (worst < 0 || m.Columns[i].Drop > m.Columns[shown[worst]].Drop) {
				worst = at
			}
		}
		if worst < 0 {
			break
		}
		need -= all[shown[worst]] + colGap
		shown = append(shown[:worst], shown[worst+1:]...)
	}
	for _, i := range shown {
		widths = append(widths, all[i])
	}
	return shown, widths
}

// rowLine lays out one row of cells.
func rowLine(m RosterModel, row RosterRow, shown, widths []int) Line {
	var l Line
	for at, i := range shown {
		t := Text("")
		if i < len(row.Cells) {
			t = row.Cells[i]
		}
		if m.Columns[i].Right {
			t = PadLeft(t, widths[at])
		} else {
			t = Pad(t, widths[at])
		}
		if at < len(shown)-1 {
			t += "  "
		}
		role := row.Role
		if i == 0 {
			role = row.Hue
		}
		l = append(l, Span{t, role})
	}
	return l
}

// Draw draws the titles, then the rows.
func (r *Roster) Draw(screen tcell.Screen) {
	c := r.canvas(screen)
	shown, widths := fitColumns(r.m, c.w)
	head := RosterRow{Role: Dim, Hue: Dim}
	for _, col := range r.m.Columns {
		head.Cells = append(head.Cells, col.Title)
	}
	c.line(0, 0, rowLine(r.m, head, shown, widths))
	var rows []row
	for i, rr := range r.m.Rows {
		rows = append(rows, row{int64(i), 0, rowLine(r.m, rr, shown, widths)})
	}
	for i, n := range r.m.Notes {
		rows = append(rows, row{int64(len(r.m.Rows) + i), 0, n})
	}
	r.v.set(rows)
	r.v.draw(c.sub(0, 1, c.w, c.h-1))
}

// Scroll moves by a scrolling key and says whether it was one.
func (r *Roster) Scroll(ev *tcell.EventKey) bool { return r.v.handle(ev) }
