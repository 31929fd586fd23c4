package usage

import (
	"fmt"
	"regexp"
	"strings"
)

// Option is an option of a command.
type Option struct {
	Name    string // without dashes
	Aliases []string
	Short   rune // 0 for none
	Bool    bool // takes no value
}

// Line is the command line of one command, as far as Check and Door judge it.
type Line struct {
	Prog     string // the program's name
	Command  string
	Names    []string // its other names
	Hidden   bool
	Group    bool // has commands of its own
	Options  []Option
	Min, Max int    // how many arguments besides options; Max -1 for any number
	Argument string // what the first of them is: "room", "model"
	Need     string // what to say when there are fewer than Min
}

// Check looks for the mistakes of spec cli.md 1.3 in what follows a command: unknown options, options without their
// value, too few or too many arguments. It returns the two lines to print, or ok.
func (l Line) Check(args []string) (problem [2]string, ok bool) {
	count := 0
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case a == "--":
			count += len(args) - i - 1
			i = len(args)
		case len(a) > 1 && a[0] == '-':
			name, _, hasValue := strings.Cut(a, "=")
			o, found := l.option(name)
			if !found {
				return UnknownOption(l.Prog, l.Command, name, l.names()), false
			}
			if o.Bool || hasValue {
				continue
			}
			if i++; i == len(args) || len(args[i]) > 1 && args[i][0] == '-' {
				return l.says("--%s needs a value", o.Name), false
			}
		default:
			count++
		}
	}
	switch {
	case count < l.Min:
		return l.says("%s", l.Need), false
	case l.Max == 0 && count > 0:
		return l.says("takes no %s", l.Argument), false
	case l.Max >= 0 && count > l.Max:
		return l.says("one %s, not %d", l.Argument, count), false
	}
	return problem, true
}

// badValue matches the parser's words about a value that is not of its option's kind.
var badValue = regexp.MustCompile(`^(--[a-z-]+): (expected|bool value) .*but got (".*")(?: \([a-z]+\))?$`)

// Mistake is the two lines about a command line that the parser did not take, for what Check leaves to it.
func Mistake(prog, command string, err error) [2]string {
	l := Line{Prog: prog, Command: command}
	m := badValue.FindStringSubmatch(err.Error())
	switch {
	case m == nil:
		return l.says("%v", err)
	case m[2] == "bool value":
		return l.says("%s is on or off and takes no value: got %s", m[1], m[3])
	}
	return l.says("%s takes a number: got %s", m[1], m[3])
}

// says is a mistake and where the help is.
func (l Line) says(format string, args ...any) [2]string {
	return [2]string{
		fmt.Sprintf("%s %s: %s", l.Prog, l.Command, fmt.Sprintf(format, args...)),
		fmt.Sprintf("See '%s %s --help'.", l.Prog, l.Command),
	}
}

// option finds a typed option, with its dashes and without a value.
func (l Line) option(typed string) (Option, bool) {
	name, long := strings.CutPrefix(typed, "--")
	for _, o := range l.Options {
		if !long {
			if o.Short != 0 && typed == "-"+string(o.Short) {
				return o, true
			}
			continue
		}
		for _, n := range append([]string{o.Name}, o.Aliases...) {
			if n == name {
				return o, true
			}
		}
	}
	return Option{}, false
}

func (l Line) names() []string {
	var names []string
	for _, o := range l.Options {
		names = append(append(names, o.Name), o.Aliases...)
	}
	return names
}
