package headless

import (
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"pooled/session"
)

// maxQuestion is the longest question read from standard input, in bytes (spec room.md 6.2: the text of an ask).
const maxQuestion = 400_000

// errNoQuestion: standard input is not a terminal and has nothing in it.
var errNoQuestion = &session.Problem{
	Code: "no-question", What: "there is nothing to ask", Why: "no question was given and standard input is empty",
	Do: "give the question behind the room, or on standard input", Exit: session.ExitUsage,
}

// Question returns what to ask once: the words of the command line, else all of standard input when that is not a
// terminal. once is false when there is a person to talk to.
func Question(words []string, stdin *os.File) (question string, once bool, err error) {
	if q := strings.TrimSpace(strings.Join(words, " ")); q != "" {
		return q, true, nil
	}
	if term.IsTerminal(int(stdin.Fd())) {
		return "", false, nil
	}
	b, err := io.ReadAll(io.LimitReader(stdin, maxQuestion+1))
	switch q := strings.TrimSpace(string(b)); {
	case err != nil:
		return "", true, fmt.Errorf("read standard input: %w", err)
	case len(b) > maxQuestion:
		return "", true, fmt.Errorf("the question on standard input is longer than %d bytes", maxQuestion)
	case q == "":
		return "", true, errNoQuestion
	default:
		return q, true, nil
	}
}
