package usage

import (
	"errors"
	"strings"
	"testing"
)

func TestCheck(t *testing.T) {
	join := Line{
		Prog: "pooled", Command: "join", Min: 1, Max: 1, Argument: "room", Need: "a room is needed",
		Options: []Option{{Name: "gb"}, {Name: "wait", Aliases: []string{"devices"}}, {Name: "quiet", Bool: true},
			{Name: "yes", Short: 'y', Bool: true}},
	}
	list := Line{Prog: "pooled", Command: "list", Argument: "model", Options: []Option{{Name: "models"}}}
	chat := Line{Prog: "pooled", Command: "chat", Min: 1, Max: -1, Argument: "room", Need: "a room is needed"}
	for _, c := range []struct {
		name string
		line Line
		args string
		want string // in the first line; empty: no mistake
	}{
		{"fine", join, "ABCD --gb 4 --quiet -y", ""},
		{"value behind =", join, "ABCD --gb=-3", ""},
		{"alias", join, "ABCD --devices 3", ""},
		{"after two dashes", join, "-- ABCD", ""},
		{"unknown long", join, "ABCD --gbb 4", "--gbb"},
		{"unknown short", join, "ABCD -x", "-x"},
		{"no value at the end", join, "ABCD --gb", "--gb needs a value"},
		{"an option for a value", join, "ABCD --gb --quiet", "--gb needs a value"},
		{"a negative number for a value", join, "ABCD --gb -3", "--gb needs a value"},
		{"no room", join, "--quiet", "a room is needed"},
		{"two rooms", join, "ABCD EFGH", "one room, not 2"},
		{"two behind dashes", join, "ABCD -- EFGH", "one room, not 2"},
		{"argument where none goes", list, "x", "takes no model"},
		{"any number", chat, "ABCD what is it", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, ok := c.line.Check(strings.Fields(c.args))
			if ok != (c.want == "") || !strings.Contains(got[0], c.want) {
				t.Errorf("Check(%q) = %q, %v, want %q in the first line", c.args, got, ok, c.want)
			}
			if !ok && !strings.Contains(got[1], "--help") {
				t.Errorf("second line %q does not say where the help is", got[1])
			}
		})
	}
	if got, _ := join.Check([]string{"--gbb", "4"}); !strings.Contains(strings.Join(got[:], " "), "--gb") {
		t.Errorf("no suggestion for --gbb in %q", got)
	}
}

func TestMistake(t *testing.T) {
	for _, c := range []struct{ parser, want string }{
		{`--ctx: expected a valid 64 bit int but got "x"`, `pooled host: --ctx takes a number: got "x"`},
		{`--wait: expected a float but got "hot" (string)`, `pooled host: --wait takes a number: got "hot"`},
		{`--start: bool value must be true, 1, yes, false, 0 or no but got "maybe"`,
			`pooled host: --start is on or off and takes no value: got "maybe"`},
		{`--json-log and --quiet can't be used together`, `pooled host: --json-log and --quiet can't be used together`},
	} {
		got := Mistake("pooled", "host", errors.New(c.parser))
		if got[0] != c.want || got[1] != "See 'pooled host --help'." {
			t.Errorf("got %q, want %q and where the help is", got, c.want)
		}
	}
}
