package shaders

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strconv"
	"strings"
)

var (
	remark      = regexp.MustCompile(`//.*`)
	workgroup   = regexp.MustCompile(`var<workgroup>\s+\w+\s*:\s*([^;]+);`)
	constant    = regexp.MustCompile(`(?m)^const\s+(\w+)\s*:\s*u32\s*=\s*([^;]+);`)
	structure   = regexp.MustCompile(`struct\s+(\w+)\s*\{([^}]*)\}`)
	suffix      = regexp.MustCompile(`\b(0x[0-9a-f]+|\d+)u\b`)
	scalarBytes = map[string]int64{"f32": 4, "u32": 4, "i32": 4, "vec2": 8, "vec3": 16, "vec4": 16}
)

// WorkgroupMemory is the workgroup memory that a source declares, in bytes. The graphics library doesn't compare it with what the device
// grants. It understands what the kernels here use: arrays, vectors, structs of those, and constants in u32 arithmetic.
func WorkgroupMemory(source string) (int64, error) {
	source = remark.ReplaceAllString(source, "")
	m := measure{consts: make(map[string]string), structs: make(map[string]string)}
	for _, c := range constant.FindAllStringSubmatch(source, -1) {
		m.consts[c[1]] = suffix.ReplaceAllString(c[2], "$1")
	}
	for _, s := range structure.FindAllStringSubmatch(source, -1) {
		m.structs[s[1]] = s[2]
	}
	var sum int64
	for _, v := range workgroup.FindAllStringSubmatch(source, -1) {
		n, err := m.bytes(v[1])
		if err != nil {
			return 0, fmt.Errorf("shaders: workgroup memory: %s: %w", v[1], err)
		}
		sum += (n + 15) / 16 * 16
	}
	return sum, nil
}

// measure knows a source's constants and structs by name.
type measure struct{ consts, structs map[string]string }

// bytes is the size of a type.
func (m measure) bytes(typ string) (int64, error) {
	typ = strings.TrimSpace(typ)
	name, rest, _ := strings.Cut(typ, "<")
	if n, ok := scalarBytes[name]; ok {
		return n, nil
	}
	if members, ok := m.structs[name]; ok {
		return m.members(members)
	}
	rest, closed := strings.CutSuffix(rest, ">")
	comma := strings.LastIndex(rest, ",")
	if name != "array" || !closed || comma < 0 {
		return 0, fmt.Errorf("type %q", typ)
	}
	each, err := m.bytes(rest[:comma])
	if err != nil {
		return 0, err
	}
	n, err := m.value(suffix.ReplaceAllString(rest[comma+1:], "$1"))
	return each * n, err
}

// members adds up a struct's members, a line each.
func (m measure) members(text string) (sum int64, err error) {
	for line := range strings.SplitSeq(text, "\n") {
		_, typ, ok := strings.Cut(strings.TrimSuffix(strings.TrimSpace(line), ","), ":")
		if !ok {
			continue
		}
		n, err := m.bytes(typ)
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return sum, nil
}

// value computes a constant expression; its syntax is Go's when the suffixes are gone.
func (m measure) value(text string) (int64, error) {
	e, err := parser.ParseExpr(text)
	if err != nil {
		return 0, err
	}
	return m.eval(e)
}

func (m measure) eval(e ast.Expr) (int64, error) {
	switch e := e.(type) {
	case *ast.ParenExpr:
		return m.eval(e.X)
	case *ast.BasicLit:
		return strconv.ParseInt(e.Value, 0, 64)
	case *ast.Ident:
		if text, ok := m.consts[e.Name]; ok {
			return m.value(text)
		}
		return 0, fmt.Errorf("no constant %s", e.Name)
	case *ast.BinaryExpr:
		x, err := m.eval(e.X)
		if err != nil {
			return 0, err
		}
		y, err := m.eval(e.Y)
		if err != nil {
			return 0, err
		}
		switch {
		case e.Op == token.ADD:
			return x + y, nil
		case e.Op == token.SUB:
			return x - y, nil
		case e.Op == token.MUL:
			return x * y, nil
		case e.Op == token.QUO && y != 0:
			return x / y, nil
		case e.Op == token.REM && y != 0:
			return x % y, nil
		}
	}
	return 0, fmt.Errorf("expression %v", e)
}
