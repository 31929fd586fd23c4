package screens

import (
	"strings"

	"pooled/widgets"
)

// LookFrom reads from the environment how the console looks on this terminal (spec cli.md 3.2): NO_COLOR, FORCE_COLOR,
// CLICOLOR, CLICOLOR_FORCE, COLORTERM, POOLED_THEME, COLORFGBG, TERM and the locale. goos is runtime.GOOS. The
// terminal's background is not asked for.
func LookFrom(getenv func(string) string, goos string) *widgets.Look {
	term := getenv("TERM")
	return &widgets.Look{
		Color: wantsColor(getenv, term),
		True:  getenv("COLORTERM") == "truecolor" || getenv("COLORTERM") == "24bit",
		Light: lightBackground(getenv),
		ASCII: term == "linux" || goos != "windows" && goos != "darwin" && !utf8Locale(getenv),
	}
}

func wantsColor(getenv func(string) string, term string) bool {
	set := func(name string) bool { v := getenv(name); return v != "" && v != "0" }
	switch {
	case getenv("NO_COLOR") != "":
		return false
	case getenv("FORCE_COLOR") == "0", getenv("CLICOLOR") == "0":
		return false
	case set("FORCE_COLOR"), set("CLICOLOR_FORCE"):
		return true
	}
	return term != "dumb"
}

func lightBackground(getenv func(string) string) bool {
	switch getenv("POOLED_THEME") {
	case "light":
		return true
	case "dark":
		return false
	}
	fields := strings.Split(getenv("COLORFGBG"), ";")
	bg := fields[len(fields)-1]
	return bg == "7" || bg == "15"
}

// utf8Locale says whether the locale in force names UTF-8. No locale at all means C.
func utf8Locale(getenv func(string) string) bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := strings.ToLower(getenv(name)); v != "" {
			return strings.Contains(v, "utf-8") || strings.Contains(v, "utf8")
		}
	}
	return false
}
