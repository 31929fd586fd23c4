package usage

import (
	"slices"
	"strings"
)

// Answer is what the front door makes of the arguments of the program: either a command line to parse, or a help page to
// print, or lines that end it.
type Answer struct {
	Args   []string // to parse, when nothing else is set
	Help   string   // the command whose help to print on standard output
	Stdout string
	Stderr string
	Exit   int
}

// Done reports whether there is nothing to parse.
func (a Answer) Done() bool { return a.Args == nil }

const exitUsage = 2

// Door answers everything that is not a command with well-formed arguments (spec cli.md 1.2, 1.3). Hidden commands are
// found but not suggested; those with commands of their own are left to the parser.
func Door(prog string, commands []Line, args []string) Answer {
	if len(args) > 1 && args[0] == "help" {
		args = []string{args[1], "--help"}
	}
	if len(args) == 0 {
		return Answer{Stdout: Overview}
	}
	switch args[0] {
	case "help", "--help", "-h":
		return Answer{Stdout: Overview}
	case "--version", "-v":
		args = []string{"version"}
	}
	known := []Command{{Name: "help"}}
	for _, c := range commands {
		if c.Command == args[0] || slices.Contains(c.Names, args[0]) {
			return c.answer(args)
		}
		if !c.Hidden {
			known = append(known, Command{Name: c.Command, Aliases: c.Names})
		}
	}
	lines := UnknownCommand(prog, args[0], known)
	if strings.HasPrefix(args[0], "-") {
		lines = UnknownOption(prog, "", args[0], []string{"help", "version"})
	}
	return Answer{Stderr: lines[0] + "\n" + lines[1] + "\n", Exit: exitUsage}
}

// answer looks at the arguments of one command; args[0] is the command.
func (l Line) answer(args []string) Answer {
	for _, a := range args[1:] {
		if a == "--" {
			break
		}
		if a == "--help" || a == "-h" {
			return Answer{Help: l.Command}
		}
	}
	if l.Group {
		return Answer{Args: args}
	}
	if lines, ok := l.Check(args[1:]); !ok {
		return Answer{Stderr: lines[0] + "\n" + lines[1] + "\n", Exit: exitUsage}
	}
	return Answer{Args: args}
}
