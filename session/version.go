package session

import (
	"fmt"
	"regexp"
	"strconv"
)

// versionText writes a protocol version for people; what was no version is "?".
func versionText(v int) string {
	if v < 0 {
		return "?"
	}
	return strconv.Itoa(v)
}

// versionBye is the reason given to a peer of another protocol version, worded for its side: it reads its own number
// as "this device" (spec wire.md 5; other programs look for exactly this form).
func versionBye(as Role, theirs string) string {
	who := "the other device"
	if as == Host {
		who = "the host"
	}
	return fmt.Sprintf("%s speaks room protocol %d, this device %s", who, protocol, theirs)
}

var byeVersion = regexp.MustCompile(`protocol (\d{1,6}|\?), this (?:tab|device|pooled) (\d{1,6}|\?)`)

// versionOfBye finds the host's protocol version in a bye.
func versionOfBye(reason string) (v int, found bool) {
	m := byeVersion.FindStringSubmatch(reason)
	if m == nil {
		return 0, false
	}
	v, err := strconv.Atoi(m[1])
	if err != nil {
		v = -1
	}
	return v, true
}

// versionProblem says that the host speaks another protocol.
func versionProblem(hosts int) *Problem {
	p := &Problem{
		Code: "version",
		What: "the host is on another protocol version",
		Why:  fmt.Sprintf("the host speaks room protocol %s, this device %d", versionText(hosts), protocol),
		Do:   "ask the host to update or reload",
		Exit: ExitFailed,
	}
	if hosts > protocol {
		p.Do = "update this program"
	}
	return p
}
